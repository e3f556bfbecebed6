"""Many claimers share one queue: nothing twice, nothing left, nobody waits."""

from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

import psycopg

from tests.support import guard
from tests.support.calls import Calls, Position
from tests.support.databases import Database
from tests.support.waiting import together

CLAIMERS = 20
JOBS = 4000


def _drain(database: Database, number: int) -> list[UUID]:
    """Claim until nothing comes; every second claimer keeps its position."""
    calls = Calls(database.connect("trunkline_worker"))
    position: Position | None = {} if number % 2 else None
    limit = 1 + number * 3
    taken: list[UUID] = []
    while True:
        claim = calls.claim(f"w{number}", limit, position=position)
        assert len(claim.rows) <= limit
        if not claim.rows:
            return taken
        keys = [(-row.priority, row.created_at) for row in claim.rows]
        assert all(one[0] <= other[0] for one, other in pairwise(keys))
        taken += claim.jobs
        position = claim.position


def test_twenty_claimers_get_every_job_once(
    guarded: Database, producer: Calls, observer: psycopg.Connection[Any]
) -> None:
    """CP-28, CP-30, TA-16, EX-20, RF-61; invariants 1 and 2."""
    jobs: list[UUID] = []
    for priority in (0, 7, -7, 0):
        jobs += producer.fill(JOBS // 4, priority=priority)
    shares = together([partial(_drain, guarded, number) for number in range(CLAIMERS)])
    taken = [job for share in shares for job in share]
    assert len(taken) == len(set(taken)) == JOBS
    assert set(taken) == set(jobs)
    assert guard.job_counts(observer) == (0, JOBS, 0, 0, JOBS)


def test_a_claim_waits_for_no_other_and_skips_what_that_holds(
    guarded: Database, producer: Calls, worker: Calls
) -> None:
    """CP-28, TA-16: locked rows are skipped, also by one that asks for a single job."""
    jobs = producer.fill(10)
    holding = Calls(guarded.connect("trunkline_worker", autocommit=False))
    held = holding.claim("one", 4)
    worker.connection.execute("set lock_timeout = '1ms'")
    assert [row.job_id for row in worker.claim("two", 1).rows] == [jobs[4]]
    assert worker.claim("two", 100).jobs == jobs[5:]
    assert worker.claim("two", 100).jobs == []
    holding.connection.rollback()
    assert held.jobs == jobs[:4]
    assert worker.claim("two", 100).jobs == jobs[:4]


def test_what_a_cut_off_claimer_held_is_claimable_at_once(
    guarded: Database, producer: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """Invariant 3: a claim that did not commit never happened."""
    jobs = producer.fill(3)
    holding = Calls(guarded.connect("trunkline_worker", autocommit=False))
    assert holding.claim("one", 3).jobs == jobs
    observer.execute(
        "select pg_terminate_backend(%s, 10000)", (holding.connection.info.backend_pid,)
    )
    claim = worker.claim("two", 3)
    assert claim.jobs == jobs
    assert [row.attempt for row in claim.rows] == [1, 1, 1]
