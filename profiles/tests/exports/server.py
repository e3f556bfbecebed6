"""The HTTP API of the profile on a real port, with a database, a store, and keys for users."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx2

from profiles.tests.exports.conftest import Exports
from profiles.tests.http_server import running
from trunkline.artifacts import LocalStore
from trunkline.operate import SyncOperator
from trunkline_profiles.exports.handlers.plain import PlainRenderer
from trunkline_profiles.exports.http import BASE, ROUTES
from trunkline_profiles.exports.repository import (
    complete_job,
    process_export_queue,
    upload_export,
)

__all__ = ["Event", "Server", "serving"]


class Event(dict[str, Any]):
    """An event of a stream: its name, its id, and its data."""

    name = ""
    id: str | None = None


class Server:
    """Requests to a running server; the user of the profile's fixture is signed in."""

    def __init__(self, exports: Exports, store: LocalStore, address: str) -> None:
        self.exports = exports
        self.store = store
        self.address = address
        self.client = httpx2.Client(base_url=address, timeout=60)
        self.keys: dict[UUID, str] = {}

    def key(self, user: UUID | None = None) -> str:
        """A key that acts for a user."""
        who = user or self.exports.user
        if who not in self.keys:
            with SyncOperator(self.exports.database.superuser_dsn) as operator:
                made = operator.keys.create(f"of {who}", "producer", tenant=str(who))
            self.keys[who] = made.key
        return self.keys[who]

    def send(self, method: str, path: str, user: UUID | None = None, **more: Any) -> Any:
        """Send a request of a user; `path` is below the base of the profile."""
        headers = {"Authorization": f"Bearer {self.key(user)}", **more.pop("headers", {})}
        return self.client.request(method, BASE + path, headers=headers, **more)

    def ok(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        """Send a request that must succeed; return what is under `data`."""
        response = self.send(method, path, **more)
        assert response.status_code == status, response.text
        return response.json()["data"]

    def refused(self, status: int, method: str, path: str, **more: Any) -> Any:
        """Send a request that must be refused with this status; return the problem."""
        response = self.send(method, path, **more)
        assert response.status_code == status, response.text
        assert response.headers["content-type"] == "application/problem+json"
        return response.json()

    def export(self, title: str = "CV") -> UUID:
        """Queue an export over HTTP."""
        document = str(self.exports.document(title))
        return UUID(self.ok("POST", "/pdf", 202, json={"documentId": document})["jobId"])

    def work(self) -> int:
        """Render what is queued, in this process."""
        return process_export_queue(
            self.exports.worker.connection,
            self.store,
            PlainRenderer(),
            "w1",
            pause=lambda _: None,
        )

    def work_some(self, count: int) -> int:
        """Render as many exports as are asked for, the oldest first."""
        done = 0
        while done < count and (row := self.exports.claim()) is not None:
            done += self.complete(row.id)
        return done

    def complete(self, job: UUID, content: bytes = b"%PDF-1.7 small") -> bool:
        """Upload a file for a claimed export, and complete it."""
        worker = self.exports.worker.connection
        uploaded = upload_export(worker, self.store, "w1", job, content)
        return complete_job(worker, "w1", job, uploaded, 1)

    @contextmanager
    def stream(self, path: str, user: UUID | None = None, **headers: str) -> Iterator[Any]:
        """Open a stream; yields the response and an iterator of its events."""
        given = {"Authorization": f"Bearer {self.key(user)}", **headers}
        with self.client.stream("GET", BASE + path, headers=given) as response:
            yield response, _events(response)


def _events(response: Any) -> Iterator[Event]:
    lines: dict[str, str] = {}
    for line in response.iter_lines():
        if line:
            name, _, value = line.partition(": ")
            lines[name] = value
        elif "event" in lines:
            event = Event(json.loads(lines["data"]))
            event.name, event.id = lines["event"], lines.get("id")
            lines = {}
            yield event
        else:
            lines = {}


@contextmanager
def serving(exports: Exports, store: LocalStore) -> Iterator[Server]:
    """Start the server with a login of its own, as a deployment does."""
    with running(exports.database, store, ROUTES) as address:
        made = Server(exports, store, address)
        yield made
        made.client.close()
