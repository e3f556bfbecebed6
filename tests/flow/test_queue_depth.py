"""A queue's own depth counts the jobs that are ready in it, whatever they wait for."""

from typing import Any

import psycopg
import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Calls
from trunkline.errors import QueueFull

LIMITS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "slots": {"api": {"concurrency": 1}},
    "wide": {"api": {"concurrency": 1000}},
    "requests": {"api": {"requests_per_minute": 1}},
    "keys": {"key/{key}": {"concurrency": 1}},
    "share group": {"fair:work/{tenant}": {}},
    "two": {"api": {"concurrency": 1}, "all": {"requests_per_minute": 1}},
}


def prepare(desk: Desk, kind: str) -> None:
    for name, parts in LIMITS[kind].items():
        desk.limit(name, **parts)
    desk.task(*LIMITS[kind])
    desk.operator.value("select trunkline.limit_queue('here', 3)")


def enqueue(desk: Desk, count: int, queue: str, **more: Any) -> None:
    desk.producer.enqueue_many(
        [
            {"task": "work", "queue": queue, "tenant": "t", "payload": {"key": str(n)}, **more}
            for n in range(count)
        ]
    )


def refusal(desk: Desk, count: int) -> tuple[int, int]:
    """Return how many wait, by the refusal of so many more, and how many were asked for."""
    with pytest.raises(psycopg.Error) as refused:
        enqueue(desk, count, "here")
    assert refused.value.sqlstate == QueueFull.sqlstate
    detail = desk.detail(refused.value)
    assert (detail["queue"], detail["max_depth"]) == ("here", 3)
    return detail["waiting"], detail["asked"]


@pytest.mark.parametrize("kind", LIMITS)
def test_jobs_of_other_queues_do_not_count(desk: Desk, kind: str) -> None:
    """Also if they wait for the same limit."""
    prepare(desk, kind)
    enqueue(desk, 5, "there")
    assert refusal(desk, 4) == (0, 4)
    enqueue(desk, 2, "here")
    enqueue(desk, 5, "there")
    assert refusal(desk, 2) == (2, 2)
    enqueue(desk, 1, "here")
    assert refusal(desk, 1) == (3, 1)
    # What is claimed there makes no room here.
    desk.worker.claim("w", 100, queues=["there"])
    assert refusal(desk, 1) == (3, 1)
    # A queue without a depth is as open as before.
    enqueue(desk, 20, "there")


@pytest.mark.parametrize("kind", ["nothing", "slots", "wide", "keys", "share group"])
def test_jobs_that_run_or_wait_for_their_time_do_not_count(desk: Desk, kind: str) -> None:
    prepare(desk, kind)
    enqueue(desk, 1, "here")
    assert len(desk.worker.claim("w", 100, queues=["here"]).rows) == 1
    enqueue(desk, 2, "here", delay="1 hour")
    assert refusal(desk, 4) == (0, 4)
    enqueue(desk, 3, "here")
    assert refusal(desk, 1) == (3, 1)


def test_jobs_with_and_without_a_limit_count_together(desk: Desk) -> None:
    prepare(desk, "slots")
    desk.task(task="free")
    enqueue(desk, 1, "here")
    enqueue(desk, 1, "here", task="free")
    enqueue(desk, 5, "there", task="free")
    assert refusal(desk, 2) == (2, 2)
    enqueue(desk, 1, "here", task="free")
    assert refusal(desk, 1) == (3, 1)


@pytest.mark.parametrize("kind", LIMITS)
def test_first_jobs_that_came_at_once_count_once_each(desk: Desk, kind: str) -> None:
    """None of them sees that another has opened the limit's lane, too."""
    prepare(desk, kind)
    producers = [desk.database.connect("trunkline_producer", autocommit=False) for _ in range(2)]
    for producer in producers:
        Calls(producer).enqueue(queue="here", tenant="t", payload={"key": "0"})
    for producer in producers:
        producer.commit()
    enqueue(desk, 1, "here")
    assert refusal(desk, 1) == (3, 1)


@pytest.mark.parametrize("kind", ["nothing", "slots"])
def test_every_way_to_enqueue_keeps_to_the_depth(desk: Desk, kind: str) -> None:
    prepare(desk, kind)
    desk.producer.register("work", queue="here")
    enqueue(desk, 5, "there")
    desk.producer.enqueue()
    desk.producer.value("select trunkline.enqueue_batch('work', '[{}, {}]')")
    for call in (
        "enqueue('work')",
        "enqueue_batch('work', '[{}]')",
        'enqueue_many(\'[{"task": "work"}]\')',
    ):
        with pytest.raises(psycopg.Error) as refused:
            desk.producer.connection.execute(f"select trunkline.{call}".encode())
        assert refused.value.sqlstate == QueueFull.sqlstate, call
