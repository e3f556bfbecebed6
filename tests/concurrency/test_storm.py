"""Everything at once: claims, ends, heartbeats, cancels, retries and reclaims on the same jobs."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import combinations
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support import guard
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database
from tests.support.waiting import duel, together

JOBS = 300
ROUNDS = 1000
HANDS = 4
ENDS = ("complete", "fail", "release", "snooze", "acknowledge_cancel", "heartbeat")


class _Storm:
    """What all threads share: who held what, what went wrong, how many rounds are left."""

    def __init__(self, jobs: list[UUID]) -> None:
        self.jobs = jobs
        self.held: list[Attempt] = []
        self.errors: Counter[str] = Counter()
        self.verdicts: Counter[tuple[str, str]] = Counter()
        self.reclaimed = 0
        self.over = threading.Event()
        self._rounds = iter(range(ROUNDS))
        self._lock = threading.Lock()

    def next_round(self) -> bool:
        with self._lock:
            return next(self._rounds, None) is not None

    def some(self, rng: random.Random) -> list[Attempt]:
        """Attempts that somebody held once, in any order; many of them are stale by now."""
        with self._lock:
            recent = self.held[-25:]
        return rng.sample(recent, min(len(recent), rng.randint(1, 12)))


def _work(database: Database, storm: _Storm, seed: int) -> None:
    """All hands share a worker's name, so that they end the same attempts at the same time."""
    rng = random.Random(seed)
    name = "worker"
    calls = Calls(database.connect("trunkline_worker"))
    position: dict[str, Any] | None = {} if seed < 2 else None
    while storm.next_round():
        try:
            claim = calls.claim(name, rng.randint(1, 10), position=position)
            position = claim.position if seed < 2 else None
            storm.held += claim.attempts
            for _ in range(2):
                function = rng.choice(ENDS)
                for verdict in calls.batch(function, name, storm.some(rng)):
                    storm.verdicts[function, verdict.verdict] += 1
        except psycopg.Error as error:
            storm.errors[str(error)] += 1
    storm.over.set()


def _until_over(storm: _Storm, action: Callable[[], None]) -> None:
    while not storm.over.is_set():
        try:
            action()
        except psycopg.Error as error:
            storm.errors[str(error)] += 1


def test_a_thousand_rounds_have_no_deadlock_and_all_jobs_are_accounted_for(
    guarded: Database, producer: Calls, observer: psycopg.Connection[Any]
) -> None:
    """Invariants 1, 2 and 5; RC-15: no deadlock, no wrong answer, every job in one place."""
    producer.register(
        "work", lease="10 seconds", max_attempts=5, backoff={"base": 1, "cap": 3, "jitter": 0}
    )
    Calls(guarded.connect("trunkline_operator")).value(
        "select trunkline.set_setting('reclaim_jitter', '1 second')"
    )
    storm = _Storm(producer.fill(JOBS))
    rng = random.Random(7)
    operator = Calls(guarded.connect("trunkline_operator"))
    reclaimer = Calls(guarded.connect("trunkline_worker"))
    guarded.move_time("0")
    time = guarded.superuser()

    def reclaim() -> None:
        storm.reclaimed += len(reclaimer.reclaim(50))
        time.execute("select trunkline_test.move_time('2 seconds')")

    def meddle() -> None:
        job = rng.choice(storm.jobs)
        what = rng.choice(["cancel", "retry", "retry", "reprioritise"])
        try:
            answer = operator.change(what, job, *([rng.randint(-3, 3)] * (what == "reprioritise")))
        except psycopg.Error as error:
            # The job is in another state by now; everything else is wrong.
            if error.sqlstate != "TL019":
                raise
            return
        if what == "retry" and answer.created:
            storm.jobs.append(answer.job_id)

    together(
        [
            *(partial(_work, guarded, storm, seed) for seed in range(HANDS)),
            partial(_until_over, storm, reclaim),
            partial(_until_over, storm, meddle),
        ],
        deadline=500,
    )
    assert storm.errors == {}
    deadlocks = Calls(observer).value(
        "select pg_stat_get_db_deadlocks(oid) from pg_database where datname = current_database()"
    )
    assert deadlocks == 0
    books = guard.job_counts(observer)
    assert books.total == books.ids == len(storm.jobs)
    assert storm.reclaimed > 0
    for function in ENDS:
        assert storm.verdicts[function, "ok"] > 0, (function, storm.verdicts)
    failed = observer.execute("select duty from trunkline.duties where failures > 0").fetchall()
    assert failed == []


@pytest.mark.parametrize("functions", list(combinations(ENDS[:5], 2)), ids=" and ".join)
def test_two_ends_of_one_batch_at_once(
    producer: Calls,
    worker: Calls,
    guarded: Database,
    observer: psycopg.Connection[Any],
    functions: tuple[str, str],
) -> None:
    """Invariant 2: each attempt ends once, whoever comes first; no deadlock in whatever order."""
    producer.register("work", max_attempts=1000, backoff={"base": 0, "jitter": 0})
    rng = random.Random(3)
    other = Calls(guarded.connect("trunkline_worker"))
    with ThreadPoolExecutor() as pool:
        for _ in range(12):
            producer.fill(60)
            held = worker.claim("w", 60).attempts
            one, two = rng.sample(held, 60), rng.sample(held, 60)
            answers = duel(
                pool,
                partial(worker.batch, functions[0], "w", one),
                partial(other.batch, functions[1], "w", two),
            )
            told = [v for a in answers if not isinstance(a, Exception) for v in a]
            assert len(told) == 120, answers
            assert sorted(v.job for v in told if v.verdict == "ok") == sorted(a.job for a in held)
    assert guard.job_counts(observer).running == 0
