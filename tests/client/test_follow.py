"""Following jobs and workflows, and waiting for them by notifications."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.client.twins import Hands, Twin
from tests.support import pgbouncer
from tests.support.databases import Database
from tests.support.internals import live
from tests.support.pgbouncer import PgBouncer
from trunkline import Task, Trunkline
from trunkline.client import hub
from trunkline.errors import UnknownJob, UnknownWorkflow, WaitTimeout, WorkflowTimeout


@pytest.fixture
def work(app: Trunkline) -> Task[..., str]:
    @app.task
    def work() -> str:
        return "done"

    return work


@pytest.fixture
def only_notices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Followers read again only if they are notified."""
    monkeypatch.setattr(hub, "_EARLY", (1e6, 1e6, 1e6))
    monkeypatch.setattr(hub, "_SELDOM", 1e6)


class Followed:
    """The events of either client, one after the other."""

    def __init__(self, twin: Twin, events: Any) -> None:
        self._twin = twin
        self._events = events

    def next(self) -> Any:
        if self._twin.blocking:
            return next(self._events)
        return self._twin(anext(self._events))

    def rest(self) -> list[Any]:
        found = []
        try:
            while True:
                found.append(self.next())
        except (StopIteration, StopAsyncIteration):
            return found


@pytest.mark.usefixtures("only_notices")
def test_each_change_arrives_by_a_notification(
    twin: Twin, work: Task[..., str], hands: Hands
) -> None:
    handle = twin(twin.of(work).enqueue())
    events = Followed(twin, handle.follow(timeout=120))
    assert events.next().state == "ready"
    (attempt,) = hands.take()
    assert events.next().state == "running"
    hands.value("select trunkline.progress('by hand', %s, 1, 30)", attempt.job)
    assert events.next().progress == 30
    hands.value(
        "select trunkline.emit('by hand', array[%s::uuid], array[1], array[1], array['x'])",
        attempt.job,
    )
    assert events.next().text == "x"
    hands.value("select trunkline.complete('by hand', array[%s::uuid], array[1])", attempt.job)
    (end,) = events.rest()
    assert (end.kind, end.state) == ("end", "completed")


@pytest.mark.usefixtures("only_notices")
def test_a_long_wait_ends_by_a_notification(
    app: Trunkline, work: Task[..., str], hands: Hands
) -> None:
    handle = work.sync.enqueue()
    results: list[Any] = []
    waiting = threading.Thread(target=lambda: results.append(handle.wait(timeout=120)))
    waiting.start()
    # The flag shows that the wait follows the job.
    while live.flags(hands.connection) != {handle.id}:
        assert waiting.is_alive()
    while not app.sync.live.hears:
        assert waiting.is_alive()
    hands.complete('"done"')
    waiting.join(120)
    assert results == ["done"]
    app.sync.close()


def test_many_waits_share_one_connection(
    app: Trunkline, work: Task[..., str], hands: Hands
) -> None:
    async def wait() -> list[str]:
        async with app:
            handles = await app.enqueue_many([work.request() for _ in range(50)])
            waits = [asyncio.create_task(handle.wait(timeout=120)) for handle in handles]
            while len(live.flags(hands.connection)) < len(handles):
                await asyncio.sleep(0)
            listeners = hands.value(
                "select count(*) from pg_stat_activity where datname = current_database()"
                " and application_name = 'trunkline listener'"
            )
            # The second one tests whether notifications arrive.
            assert listeners <= 2
            for _ in handles:
                await asyncio.to_thread(hands.complete, '"done"')
            return list(await asyncio.gather(*waits))

    assert asyncio.run(wait()) == ["done"] * 50


def test_an_unknown_job_or_workflow_cannot_be_followed(twin: Twin, work: Task[..., str]) -> None:
    del work
    with pytest.raises(UnknownJob):
        Followed(twin, twin.jobs.follow(uuid4(), timeout=120)).next()
    with pytest.raises(UnknownWorkflow):
        Followed(twin, twin.client.workflows.follow(uuid4(), timeout=120)).next()


def test_following_ends_at_its_timeout(twin: Twin, work: Task[..., str]) -> None:
    handle = twin(twin.of(work).enqueue())
    events = Followed(twin, twin.jobs.follow(handle.id, timeout=0.2))
    assert events.next().kind == "state"
    with pytest.raises(WaitTimeout):
        events.next()


def test_a_workflow_is_followed_to_its_end(
    twin: Twin, app: Trunkline, work: Task[..., str], hands: Hands
) -> None:
    flow = app.workflow("flow")
    flow.add(work.request())
    started = twin(twin.client.workflows.start(flow))
    short = Followed(twin, twin.client.workflows.follow(started.id, timeout=0.2))
    assert short.next().state == "queued"
    with pytest.raises(WorkflowTimeout):
        short.next()
    events = Followed(twin, twin.client.workflows.follow(started.id, timeout=120))
    assert events.next().state == "queued"
    hands.complete('"done"')
    last = events.rest()[-1]
    assert (last.kind, last.state, last.percent) == ("end", "completed", 100)


@pytest.fixture
def pooler(database: Database) -> Iterator[PgBouncer]:
    with pgbouncer.start(database.server) as running:
        yield running


def test_behind_a_pooler_followers_poll(database: Database, pooler: PgBouncer) -> None:
    app = Trunkline(pooler.dsn(database.dsn))

    @app.task
    def polled() -> None: ...

    with app.sync:
        handle = polled.sync.enqueue()
        events = handle.follow(timeout=120)
        assert next(events).state == "ready"
        handle.cancel()
        assert next(events).state == "cancelled"
        assert not app.sync.live.hears
