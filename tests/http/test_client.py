"""trunkline.http_client against the application."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from tests.http.site import Api, Site
from trunkline.errors import (
    ApiUnreachable,
    IdempotencyMismatch,
    InvalidRequest,
    JobCancelled,
    NotPermitted,
    SignInRefused,
    UnknownJob,
    WaitTimeout,
)
from trunkline.http_client import AsyncApiClient
from trunkline.model import JobState


class Clients:
    """Clients of one application, which run in its event loop."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._api = Api(site)
        self._runner = asyncio.Runner()
        self._connection = httpx2.AsyncClient(transport=httpx2.ASGITransport(self._api.app))

    def of(self, key: str) -> AsyncApiClient:
        return AsyncApiClient(
            "http://api.example.org/", self._site.keys.get(key, key), client=self._connection
        )

    def run(self, call: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(call)

    def close(self) -> None:
        self.run(self._connection.aclose())
        self.run(self._api.app.state.resources.close())
        self._runner.close()
        self._api.close()


@pytest.fixture
def clients(site: Site) -> Iterator[Clients]:
    with closing(Clients(site)) as made:
        yield made


def test_jobs_are_created_listed_and_cancelled(clients: Clients) -> None:
    producer, tag = clients.of("producer"), uuid4().hex
    made = [
        clients.run(producer.jobs.create("report", {"n": n}, tags=[tag], priority=n))
        for n in range(3)
    ]
    found = clients.run(producer.jobs.list(tag=tag, state=["ready", JobState.DEAD], limit=2))
    assert [job.id for job in found.jobs] == [made[2].job_id, made[1].job_id]

    async def everything() -> list[Any]:
        return [job async for job in producer.jobs.list_all(tag=tag, limit=2)]

    assert [job.priority for job in clients.run(everything())] == [2, 1, 0]
    job = clients.run(producer.jobs.get(made[0].job_id))
    assert (job.payload, job.tags) == ({"n": 0}, (tag,))
    assert clients.run(producer.jobs.cancel(job.id)).outcome == "cancelled"
    with pytest.raises(JobCancelled):
        clients.run(producer.jobs.wait(job.id, timeout=5))
    with pytest.raises(WaitTimeout):
        clients.run(producer.jobs.wait(made[1].job_id, timeout=0.05))
    many = clients.run(producer.jobs.create_many([{"task": "report"}] * 3))
    assert len({job.job_id for job in many}) == 3


def test_errors_are_those_of_the_engine(clients: Clients) -> None:
    producer = clients.of("producer")
    key = uuid4().hex
    first = clients.run(producer.jobs.create("report", {"a": 1}, idempotency_key=key))
    again = clients.run(producer.jobs.create("report", {"a": 1}, idempotency_key=key))
    assert (again.job_id, again.created) == (first.job_id, False)
    with pytest.raises(IdempotencyMismatch) as mismatch:
        clients.run(producer.jobs.create("report", {"a": 2}, idempotency_key=key))
    assert mismatch.value.hint
    for client, call, kind in (
        (producer, producer.jobs.get(uuid4()), UnknownJob),
        (producer, producer.jobs.create("report", colour="red"), InvalidRequest),
        (producer, clients.of("reader").jobs.create("report"), NotPermitted),
        (producer, clients.of("tlk_wrong").jobs.list(), SignInRefused),
    ):
        assert client is producer
        with pytest.raises(kind):
            clients.run(call)


def test_workflows_events_and_artifacts(clients: Clients) -> None:
    producer = clients.of("producer")
    steps: list[dict[str, Any]] = [
        {"name": "a", "task": "report"},
        {"name": "b", "task": "report", "after": ["a"]},
    ]
    started = clients.run(producer.workflows.start("order", steps, tags=["x"]))
    flow = clients.run(producer.workflows.get(started.workflow_id))
    assert (flow.name, flow.jobs, [step["name"] for step in flow.steps]) == ("order", 2, ["a", "b"])
    clients.run(producer.workflows.cancel(started.workflow_id))
    assert clients.run(producer.workflows.get(started.workflow_id)).state == "cancelled"
    batch = clients.run(producer.workflows.start_batch("many", [{"task": "report"}] * 4))
    assert batch.jobs == 4
    sent = clients.run(producer.send_event("paid", {"n": 1}, key=uuid4().hex))
    assert sent.outcome == "stored"
    assert clients.run(producer.artifacts.list(workflow=started.workflow_id)) == []


def test_an_api_that_does_not_answer_is_named(clients: Clients) -> None:
    async def call() -> None:
        async with AsyncApiClient("http://127.0.0.1:1", "tlk_x") as api:
            await api.jobs.list()

    with pytest.raises(ApiUnreachable):
        clients.run(call())


def test_the_client_needs_no_server_package() -> None:
    """It imports neither the server nor the driver of the database."""
    code = (
        "import sys, trunkline.http_client;"
        "bad = {'starlette', 'uvicorn', 'jwt', 'psycopg'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
