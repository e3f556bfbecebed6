"""The same request from twenty connections at once is one job."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import psycopg
import pytest

from tests.support import guard
from tests.support.calls import Calls, Claim
from tests.support.databases import Database
from tests.support.internals import rows
from tests.support.waiting import backend, duel, together, until_blocked

PRODUCERS = 20
ROUNDS = 10


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_twenty_equal_requests_make_one_job(
    guarded: Database, observer: psycopg.Connection[Any], key: str
) -> None:
    """EX-14: exactly one answer says created, all name the same job."""
    barrier = Barrier(PRODUCERS)

    def ask(number: int) -> list[Any]:
        calls = Calls(guarded.connect("trunkline_producer"))
        answers = []
        for turn in range(ROUNDS):
            barrier.wait(30)
            answers.append(calls.enqueue(priority=number, **{key: f"key {turn}"}))
        return answers

    asked = together([partial(ask, number) for number in range(PRODUCERS)])
    for turn in zip(*asked, strict=True):
        assert len({answer.job_id for answer in turn}) == 1
        assert [answer.created for answer in turn].count(True) == 1
    found = observer.execute("select count(*), min(priority) from trunkline.jobs").fetchone()
    assert found is not None
    assert found[0] == ROUNDS
    if key == "unique_key":
        assert found[1] == PRODUCERS - 1, "the highest priority asked for wins"


@pytest.mark.parametrize("key", ["unique_key", "idempotency_key"])
def test_a_request_waits_for_the_one_before_and_takes_over_when_that_rolls_back(
    guarded: Database, producer: Calls, observer: psycopg.Connection[Any], key: str
) -> None:
    """Invariant 3: a rolled-back request never was and holds no key."""
    first = Calls(guarded.connect("trunkline_producer", autocommit=False))
    gone = first.enqueue(**{key: "k"})
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(lambda: producer.enqueue(**{key: "k"}))
        assert until_blocked(observer, backend(producer.connection)) == [backend(first.connection)]
        first.connection.rollback()
        second = waiting.result(30)
    assert second.created
    assert second.job_id != gone.job_id
    assert not producer.enqueue(**{key: "k"}).created


@pytest.mark.parametrize("end", ["complete", "acknowledge_cancel", "claim"])
def test_a_key_whose_holder_ends_meanwhile_is_taken_or_its_live_holder_named(
    producer: Calls, worker: Calls, observer: psycopg.Connection[Any], end: str
) -> None:
    """EX-14: never a duplicate of a live job, never the name of one that had ended before."""
    producer.register("work", unique_until="claim" if end == "claim" else "end")
    created = 0
    with ThreadPoolExecutor() as pool:
        for _ in range(200):
            holder = producer.enqueue(unique_key="k").job_id
            if end == "claim":
                claim, answer = duel(
                    pool, partial(worker.claim, "w"), partial(producer.enqueue, unique_key="k")
                )
                assert isinstance(claim, Claim), claim
                held = claim.attempts
            else:
                held = worker.claim("w").attempts
                verdicts, answer = duel(
                    pool,
                    partial(worker.batch, end, "w", held),
                    partial(producer.enqueue, unique_key="k"),
                )
                assert not isinstance(verdicts, Exception), verdicts
            assert [attempt.job for attempt in held] == [holder]
            assert not isinstance(answer, Exception), answer
            assert answer.created == (answer.job_id != holder)
            created += answer.created
            holders = [job for _, _, job in rows.unique_keys(observer)]
            assert holders == ([answer.job_id] if answer.created else [])
            rest = worker.claim("w", 10).attempts
            assert [attempt.job for attempt in rest] == ([answer.job_id] if answer.created else [])
            worker.batch("complete", "w", [*rest, *(held if end == "claim" else [])])
    assert guard.job_counts(observer).finished == 200 + created
