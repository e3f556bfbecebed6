"""A server of the API in a thread, and streams of events read from its socket."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import httpx2

from tests.http.site import SECRET, Site
from trunkline.http import ApiSettings, JwtSettings, create_app
from trunkline.http.serving import server_of

__all__ = ["Event", "Serving", "Stream", "serving"]

# Only a failing test ever takes it.
DEADLINE = 120.0


@dataclass(frozen=True)
class Event:
    """One event; a comment has no kind."""

    kind: str | None
    data: dict[str, Any]
    id: str | None


class Stream:
    """An open stream."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self._lines = response.iter_lines()
        # The preamble: when to come back.
        first = next(self._lines)
        assert first.startswith("retry: ")
        self.retry = int(first.removeprefix("retry: "))
        assert next(self._lines) == ""

    def next(self) -> Event:
        """Return the next event or comment; raises StopIteration at the end of the stream."""
        fields: dict[str, str] = {}
        for line in self._lines:
            if not line:
                break
            name, _, value = line.partition(":")
            fields[name] = value.strip()
        else:
            raise StopIteration
        return Event(fields.get("event"), json.loads(fields.get("data", "{}")), fields.get("id"))

    def until(self, kind: str) -> list[Event]:
        """Return the events up to the first of a kind."""
        events = [self.next()]
        while events[-1].kind != kind:
            events.append(self.next())
        return events

    def rest(self) -> list[Event]:
        """Return the events until the server closes the stream."""
        events = []
        with contextlib.suppress(StopIteration):
            while True:
                events.append(self.next())
        return events


class Serving:
    """The address of a server, and requests to it."""

    def __init__(self, site: Site, app: Any, port: int, stop: Callable[[], None]) -> None:
        self.site = site
        self.app = app
        self.port = port
        # Asks the server to end, as a signal does.
        self.stop = stop
        self.listening: socket.socket
        self.client = httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=DEADLINE)

    @property
    def streams(self) -> Any:
        """The streams of the server."""
        return self.app.state.resources.streams

    @contextlib.contextmanager
    def stream(
        self, path: str, *, by: str = "", bearer: str = "", last: str | None = None
    ) -> Iterator[Stream]:
        """Open a stream that must be granted."""
        headers = {} if last is None else {"Last-Event-ID": last}
        if by or bearer:
            headers["Authorization"] = f"Bearer {self.site.keys[by] if by else bearer}"
        with self.client.stream("GET", path, headers=headers) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield Stream(response)

    def send(
        self, method: str, path: str, *, by: str = "", bearer: str = "", **headers: str
    ) -> httpx2.Response:
        if by or bearer:
            headers["Authorization"] = f"Bearer {self.site.keys[by] if by else bearer}"
        return self.client.request(method, path, headers=headers)

    def __enter__(self) -> Self:
        return self


@contextlib.contextmanager
def serving(site: Site, *, send_buffer: int | None = None, **changes: Any) -> Iterator[Serving]:
    """Serve a site; changes are those of the settings of streams."""
    settings = ApiSettings(jwt=JwtSettings(secret=SECRET, roles=(site.tenant_role,)))
    app = create_app(site.dsn, settings, routes=[])
    streams = app.state.resources.streams
    for name, value in changes.items():
        object.__setattr__(streams.settings, name, value)
    listening = socket.create_server(("127.0.0.1", 0))
    if send_buffer is not None:
        # Connections inherit it.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    server = server_of(app, settings)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True

    made = Serving(site, app, listening.getsockname()[1], stop)
    made.listening = listening
    try:
        yield made
    finally:
        made.client.close()
        stop()
        thread.join(30)
