"""The routes of the source: start, read with a tag, cancel, and follow."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx2
import pytest

from profiles.tests.http_server import running
from profiles.tests.studio.conftest import PARAMS, TEXT, Studio
from trunkline.artifacts import LocalStore
from trunkline.operate import SyncOperator
from trunkline_profiles.studio.http import BASE, ROUTES

ORDER = {"type": "nuclear_v2", "params": PARAMS}


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


@pytest.fixture
def client(studio: Studio, store: LocalStore) -> Iterator[httpx2.Client]:
    """Requests of the user of the fixtures."""
    with SyncOperator(studio.database.superuser_dsn) as operator:
        made = operator.keys.create("of the user", "producer", tenant=str(studio.user))
    headers = {"Authorization": f"Bearer {made.key}"}
    with (
        running(studio.database, store, ROUTES) as address,
        httpx2.Client(base_url=address, headers=headers, timeout=60) as opened,
    ):
        yield opened


def start(client: httpx2.Client, **headers: str) -> Any:
    answer = client.post(f"{BASE}/start", json=ORDER, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


def test_an_order_is_started_over_http(client: httpx2.Client, studio: Studio) -> None:
    """TA-04: 202 with id and status; the same key is the same job; 400, 401, 409."""
    first = start(client, **{"Idempotency-Key": "k"})
    assert first["status"] == "queued"
    assert start(client, **{"Idempotency-Key": "k"}) == first
    other = ORDER | {"params": PARAMS | {"systems": ["vedic"]}}
    answer = client.post(f"{BASE}/start", json=other, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 409
    bodies: tuple[Any, ...] = ({}, [], {"type": 7}, ORDER | {"x": 1}, ORDER | {"params": {}})
    for wrong in bodies:
        assert client.post(f"{BASE}/start", json=wrong).status_code == 400
    anonymous = {"Authorization": ""}
    assert client.post(f"{BASE}/start", json=ORDER, headers=anonymous).status_code == 401
    assert len(studio.rows("select id from studio.jobs")) == 1


def test_a_job_is_read_with_links_and_a_tag(
    client: httpx2.Client, studio: Studio, store: LocalStore
) -> None:
    """TA-45, TA-46, TA-47, TA-69: 304 while nothing changes, links once there are files, 404."""
    path = f"{BASE}/{start(client)['id']}"
    answer = client.get(path)
    assert (answer.json()["status"], answer.json()["artifacts"]) == ("queued", [])
    tag = answer.headers["etag"]
    again = client.get(path, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    (task,) = studio.claim(TEXT, count=1)
    output, (file,) = studio.product(task)
    written = store.put(file["path"], [b"the text"])
    studio.complete(task.id, output, [file | {"bytes": written.bytes, "sha256": written.sha256}])
    answer = client.get(path, headers={"If-None-Match": tag})
    assert answer.status_code == 200
    (artifact,) = answer.json()["artifacts"]
    assert artifact.keys() == {"type", "name", "duration", "url"}
    assert client.get(artifact["url"], headers={"Authorization": ""}).content == b"the text"
    foreign = studio.order(user=uuid4())
    for unknown in (foreign, uuid4(), "x"):
        assert client.get(f"{BASE}/{unknown}").status_code == 404


def test_a_job_is_cancelled_and_followed_over_http(client: httpx2.Client, studio: Studio) -> None:
    """TA-67, TA-75: the state at once, each change, and the end."""
    job = UUID(start(client)["id"])
    with client.stream("GET", f"{BASE}/{job}/stream") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == "event: progress"
        assert json.loads(next(lines).removeprefix("data: "))["status"] == "queued"
        studio.claim(TEXT, count=1)
        data = (json.loads(line[6:]) for line in lines if line.startswith("data: "))
        assert next(data)["status"] == "processing"
    assert client.post(f"{BASE}/{job}/cancel").status_code == 202
    (task,) = [one for one in studio.tasks(job) if one.status == "claimed"]
    assert not studio.beat(task.id)
    with client.stream("GET", f"{BASE}/{job}/stream") as answer:
        assert "event: cancelled" in list(answer.iter_lines())
    assert client.post(f"{BASE}/{uuid4()}/cancel").status_code == 404
    foreign = studio.order(user=uuid4())
    assert client.post(f"{BASE}/{foreign}/cancel").status_code == 404
    assert client.get(f"{BASE}/{foreign}/stream").status_code == 404
