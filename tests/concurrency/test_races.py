"""Cancel, retry and reprioritise against claim and the ends: one of the legal outcomes, always."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support import guard
from tests.support.calls import Calls, Claim, Position
from tests.support.databases import Database
from tests.support.waiting import backend, duel, until_blocked

ROUNDS = 300
WRONG_STATE = "TL019"


def _state(observer: psycopg.Connection[Any], job: UUID) -> str:
    row = observer.execute("select state from trunkline.jobs where job_id = %s", (job,)).fetchone()
    assert row is not None, f"job {job} is lost"
    found: str = row[0]
    return found


def _code(answer: object) -> str | None:
    """Return the SQLSTATE of a refusal."""
    return answer.sqlstate if isinstance(answer, psycopg.Error) else None


@pytest.mark.parametrize("kept", [False, True], ids=["full look", "kept position"])
def test_cancel_against_claim(
    producer: Calls,
    operator: Calls,
    worker: Calls,
    observer: psycopg.Connection[Any],
    kept: bool,
) -> None:
    """T13, T14: cancelled before it ran, or asked for while it runs; never both, never neither."""
    outcomes: Counter[str] = Counter()
    position: Position | None = {} if kept else None
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            job = producer.enqueue().job_id
            cancelled, claim = duel(
                pool,
                partial(operator.change, "cancel", job, "race"),
                partial(worker.claim, "w", position=position),
            )
            assert not isinstance(cancelled, Exception), cancelled
            assert isinstance(claim, Claim), claim
            position = claim.position
            outcomes[cancelled.outcome] += 1
            assert (cancelled.outcome, claim.jobs, _state(observer, job)) in [
                ("cancelled", [], "cancelled"),
                ("requested", [job], "running"),
            ]
            if claim.rows:
                beat = worker.batch("heartbeat", "w", claim.attempts)
                assert [verdict.verdict for verdict in beat] == ["cancel"]
                worker.batch("acknowledge_cancel", "w", claim.attempts)
    assert guard.job_counts(observer).finished == ROUNDS == outcomes.total()


@pytest.mark.parametrize("end", ["complete", "release", "fail"])
def test_cancel_against_the_end_of_an_attempt(
    producer: Calls, operator: Calls, worker: Calls, observer: psycopg.Connection[Any], end: str
) -> None:
    """T13, T14: the job is found wherever it goes meanwhile."""
    legal = {
        "complete": [("ended", "completed"), ("requested", "completed")],
        "release": [("requested", "cancelled"), ("cancelled", "cancelled")],
        "fail": [("requested", "cancelled"), ("cancelled", "cancelled")],
    }[end]
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS // 2):
            job = producer.enqueue().job_id
            held = worker.claim("w").attempts
            verdicts, cancelled = duel(
                pool,
                partial(worker.batch, end, "w", held),
                partial(operator.change, "cancel", job, "race"),
            )
            assert not isinstance(verdicts, Exception), verdicts
            assert not isinstance(cancelled, Exception), cancelled
            assert [verdict.verdict for verdict in verdicts] == ["ok"]
            assert (cancelled.outcome, _state(observer, job)) in legal
    assert guard.job_counts(observer).finished == ROUNDS // 2


def test_complete_against_the_heartbeat_that_returns_cancel(
    producer: Calls,
    operator: Calls,
    worker: Calls,
    guarded: Database,
    observer: psycopg.Connection[Any],
) -> None:
    """T14, EX-35, CP-50: completed, unless the worker was told to cancel before."""
    heart = Calls(guarded.connect("trunkline_worker"))
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            job = producer.enqueue().job_id
            held = worker.claim("w").attempts
            operator.change("cancel", job, "race")
            beats, ends = duel(
                pool,
                partial(heart.batch, "heartbeat", "w", held),
                partial(worker.batch, "complete", "w", held, results=["{}"]),
            )
            assert not isinstance(beats, Exception), beats
            assert not isinstance(ends, Exception), ends
            found = (beats[0].verdict, ends[0].verdict, _state(observer, job))
            outcomes[found[2]] += 1
            # Skipped by the heartbeat because its row was locked, or gone by then.
            assert found in [
                ("cancel", "cancel", "cancelled"),
                ("ok", "ok", "completed"),
                ("lost", "ok", "completed"),
            ]
    assert guard.job_counts(observer).finished == ROUNDS == outcomes.total()


def test_complete_waits_for_a_heartbeat_that_has_not_committed(
    producer: Calls,
    operator: Calls,
    worker: Calls,
    guarded: Database,
    observer: psycopg.Connection[Any],
) -> None:
    """T14: a heartbeat that is rolled back has told the worker nothing."""
    for commits, expected in [(True, ("cancel", "cancelled")), (False, ("ok", "completed"))]:
        job = producer.enqueue().job_id
        held = worker.claim("w").attempts
        operator.change("cancel", job, "race")
        heart = Calls(guarded.connect("trunkline_worker", autocommit=False))
        [beat] = heart.batch("heartbeat", "w", held)
        assert beat.verdict == "cancel"
        with ThreadPoolExecutor() as pool:
            ending = pool.submit(worker.batch, "complete", "w", held)
            until_blocked(observer, backend(worker.connection))
            if commits:
                heart.connection.commit()
            else:
                heart.connection.rollback()
            [end] = ending.result(60)
        assert (end.verdict, end.state) == expected
        assert _state(observer, job) == expected[1]


def test_reprioritise_against_claim(
    producer: Calls, operator: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """A job that changes its place is claimed by this claim or by the next, by position."""
    outcomes: Counter[str] = Counter()
    position: Position | None = {}
    with ThreadPoolExecutor() as pool:
        for turn in range(ROUNDS):
            job = producer.enqueue().job_id
            priority = turn % 5 + 1
            moved, claim = duel(
                pool,
                partial(operator.change, "reprioritise", job, priority),
                partial(worker.claim, "w", position=position),
            )
            assert isinstance(claim, Claim), claim
            outcome = _code(moved) or moved.outcome  # type: ignore[union-attr]
            outcomes[outcome] += 1
            if not claim.rows:
                assert (outcome, _state(observer, job)) == ("reprioritised", "ready")
                claim = worker.claim("w", position=claim.position)
                assert claim.jobs == [job]
            assert outcome in {"reprioritised", WRONG_STATE}
            assert claim.rows[0].priority == (priority if outcome == "reprioritised" else 0)
            position = claim.position
            worker.batch("complete", "w", claim.attempts)
    assert guard.job_counts(observer) == (0, 0, ROUNDS, 0, ROUNDS)


def test_retry_against_retry_and_claim(
    guarded: Database,
    producer: Calls,
    operator: Calls,
    worker: Calls,
    observer: psycopg.Connection[Any],
) -> None:
    """T16: a dead letter comes back once; the second request is told its state."""
    rival = Calls(guarded.connect("trunkline_operator"))
    claimer = Calls(guarded.connect("trunkline_worker"))
    position: Position | None = {}
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            job = producer.enqueue().job_id
            held = worker.claim("w").attempts
            worker.batch("fail", "w", held, retryable=[False])
            claiming = pool.submit(partial(claimer.claim, "c", position=position))
            answers = duel(
                pool,
                partial(operator.change, "retry", job),
                partial(rival.change, "retry", job),
            )
            claim = claiming.result(30)
            won = [answer for answer in answers if not isinstance(answer, Exception)]
            assert [(answer.job_id, answer.state) for answer in won] == [(job, "ready")]
            assert [_code(answer) for answer in answers].count(WRONG_STATE) == 1
            position = claim.position
            if not claim.rows:
                assert _state(observer, job) == "ready"
                claim = claimer.claim("c", position=position)
                position = claim.position
            assert [(row.job_id, row.attempt, row.failures) for row in claim.rows] == [(job, 2, 0)]
            claimer.batch("complete", "c", claim.attempts)
    assert guard.job_counts(observer) == (0, 0, ROUNDS, 0, ROUNDS)


def test_retry_against_complete(
    producer: Calls, operator: Calls, worker: Calls, observer: psycopg.Connection[Any]
) -> None:
    """T16: refused while the job lives, a new job once it has ended; never an unknown job."""
    outcomes: Counter[str] = Counter()
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS):
            job = producer.enqueue().job_id
            held = worker.claim("w").attempts
            verdicts, again = duel(
                pool,
                partial(worker.batch, "complete", "w", held),
                partial(operator.change, "retry", job),
            )
            assert not isinstance(verdicts, Exception), verdicts
            assert _state(observer, job) == "completed"
            outcomes[_code(again) or "new job"] += 1
            for attempt in worker.claim("w").attempts:
                assert not isinstance(again, Exception)
                assert attempt.job == again.job_id != job
                worker.batch("complete", "w", [attempt])
    assert set(outcomes) <= {"new job", WRONG_STATE}, outcomes
    assert guard.job_counts(observer).finished == ROUNDS + outcomes["new job"]


@pytest.mark.parametrize("end", ["complete", "fail", "release", "snooze", "acknowledge_cancel"])
def test_a_batch_may_name_an_old_and_the_present_attempt_of_a_job(
    producer: Calls, worker: Calls, end: str
) -> None:
    """Invariant 2: a worker that lost a job and claimed it again reports both; one counts."""
    producer.enqueue()
    old = worker.claim("w").attempts
    worker.batch("release", "w", old)
    present = worker.claim("w").attempts
    for batch in (old + present + old, present + old + old):
        with worker.connection.transaction(force_rollback=True):
            verdicts = worker.batch(end, "w", batch)
        told = [(verdict.attempt, verdict.verdict) for verdict in verdicts]
        assert told == [(a.number, "ok" if a in present else "lost") for a in batch]


def test_retry_against_retry_of_a_finished_job(
    producer: Calls, operator: Calls, worker: Calls, guarded: Database
) -> None:
    """T1: two who press the button at once get one new job; the second is answered with it."""
    other = Calls(guarded.connect("trunkline_operator"))
    with ThreadPoolExecutor() as pool:
        for _ in range(ROUNDS // 3):
            job = producer.enqueue().job_id
            worker.batch("complete", "w", worker.claim("w").attempts)
            one, two = duel(
                pool, partial(operator.change, "retry", job), partial(other.change, "retry", job)
            )
            assert not isinstance(one, Exception), one
            assert not isinstance(two, Exception), two
            assert one.job_id == two.job_id != job
            assert {one.created, two.created} == {True, False}
            claim = worker.claim("w", 10)
            assert claim.jobs == [one.job_id]
            worker.batch("complete", "w", claim.attempts)
            # Once the new one is over, the old one can be retried again.
            again = operator.change("retry", job)
            assert again.created
            assert again.job_id != one.job_id
            worker.batch("complete", "w", worker.claim("w", 10).attempts)


def test_a_retry_waits_for_the_one_before_it(
    producer: Calls,
    operator: Calls,
    worker: Calls,
    guarded: Database,
    observer: psycopg.Connection[Any],
) -> None:
    """The first may still roll back: only then does the second make a job."""
    job = producer.enqueue().job_id
    worker.batch("complete", "w", worker.claim("w").attempts)
    first = Calls(guarded.connect("trunkline_operator", autocommit=False))
    first.change("retry", job)
    with ThreadPoolExecutor() as pool:
        second = pool.submit(operator.change, "retry", job)
        until_blocked(observer, backend(operator.connection))
        first.connection.rollback()
        answer = second.result(60)
    assert answer.created
    assert worker.claim("w", 10).jobs == [answer.job_id]
