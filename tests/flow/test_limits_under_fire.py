"""Many at once: no limit is ever passed, and nothing waits for ever."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from tests.flow.conftest import Desk
from tests.support.calls import Calls
from tests.support.internals import flow
from tests.support.waiting import together, until


@pytest.mark.parametrize("most", [10, 100])
@pytest.mark.parametrize("part", ["concurrency", "requests_per_minute"])
def test_a_hundred_claims_at_once_get_exactly_what_there_is(
    desk: Desk, part: str, most: int
) -> None:
    """A claim that finds the limit held by another passes it by; the next one finds it free.

    Of the larger limit they take the first half side by side.
    """
    desk.limit("api", **{part: most}).task("api")
    desk.enqueue(200)
    crew = [Calls(desk.database.connect("trunkline_worker")) for _ in range(10)]

    def work(number: int) -> int:
        return sum(len(crew[number].claim(f"w{number}", 1).jobs) for _ in range(30))

    taken = sum(together([partial(work, number) for number in range(len(crew))]))
    assert 0 < taken <= most
    assert taken + len(desk.claim()) == most
    assert desk.claim() == []


def test_slots_are_never_passed_while_workers_come_and_go(desk: Desk) -> None:
    """Invariant 6, as it is after every commit."""
    desk.limit("model/{model}", concurrency=3).task("model/{model}")
    for model in "abcd":
        desk.enqueue(50, payload={"model": model})
    crew = [Calls(desk.database.connect("trunkline_worker")) for _ in range(6)]
    readers = [Calls(desk.database.connect("trunkline_reader")) for _ in crew]
    live = "select exists (select from trunkline.jobs where finished_at is null)"
    over: list[int] = []
    done = threading.Event()

    def watch() -> None:
        eyes = desk.database.superuser()
        while not done.is_set():
            over.append(flow.most_running_per_bucket(eyes))

    def work(number: int) -> int:
        hand, worker, ended = crew[number], f"w{number}", 0
        while readers[number].value(live):
            attempts = hand.claim(worker, 5).attempts
            for attempt in attempts:
                how = "release" if attempt.number == 1 and attempt.job.int % 5 == 0 else "complete"
                hand.batch(how, worker, [attempt])
                ended += how == "complete"
        return ended

    eye = threading.Thread(target=watch)
    eye.start()
    try:
        ended = together([partial(work, number) for number in range(len(crew))])
    finally:
        done.set()
        eye.join()
    assert sum(ended) == 200
    assert max(over) == 3


def test_a_bucket_that_closes_leaves_no_late_job_behind(desk: Desk) -> None:
    """Producers that commit late, and the duty that closes empty buckets meanwhile."""
    desk.limit("doc/{doc}", concurrency=1).task("doc/{doc}")
    stop = threading.Event()

    def close() -> None:
        broom = desk.database.superuser()
        while not stop.is_set():
            flow.close_empty_buckets(broom)

    def produce(number: int) -> list[int]:
        isolation = ("read committed", "repeatable read")[number % 2]
        connection = desk.database.connect("trunkline_producer", autocommit=False)
        hand = Calls(connection)
        for turn in range(40):
            connection.execute(f"begin isolation level {isolation}".encode())
            hand.enqueue(payload={"doc": str(turn % 3)})
            connection.execute("select pg_sleep(0.002)")
            connection.commit()
        return [40]

    def work(_number: int) -> list[int]:
        hand = Calls(desk.database.connect("trunkline_worker"))
        ended = 0
        while ended < 160:
            attempts = hand.claim("w", 10).attempts
            if attempts:
                hand.batch("complete", "w", attempts)
                ended += len(attempts)
        return [ended]

    broom = threading.Thread(target=close)
    broom.start()
    try:
        with ThreadPoolExecutor(5) as pool:
            producing = [pool.submit(produce, number) for number in range(4)]
            working = pool.submit(work, 0)
            assert sum(sum(one.result()) for one in producing) == 160
            assert working.result(timeout=300) == [160]
    finally:
        stop.set()
        broom.join()

    def closed() -> bool:
        # Waits for whoever writes anywhere on the server, since ids of transactions are its own.
        flow.close_empty_buckets(desk.behind)
        return flow.open_buckets(desk.behind) == []

    assert until(closed, "all buckets are closed")


def test_a_busy_bucket_keeps_its_place_and_loses_no_late_job(desk: Desk) -> None:
    """Invariant 3: numbers drawn early and committed late lie behind where claims have come to."""
    desk.limit("api", concurrency=100_000).task("api").task("api", task="other")
    desk.enqueue(100)
    late = [Calls(desk.database.connect("trunkline_producer", autocommit=False)) for _ in range(3)]
    for hand in late:
        hand.enqueue()
        hand.enqueue("other")
    found: list[Any] = []
    for turn in range(40):
        desk.enqueue(30, priority=turn % 2)
        # A worker that serves one task does not pass over those of another.
        rows = desk.worker.connection.execute(
            "select job_id from trunkline.claim('w', null, 25, array['work'])"
        ).fetchall()
        found += [row[0] for row in rows]
        if turn in {28, 32, 36}:
            late.pop().connection.commit()
    assert flow.cursor(desk.behind) > 0, "it kept a place"
    while jobs := desk.claimed(25):
        found += jobs
    assert len(found) == len(set(found)) == 100 + 40 * 30 + 6
