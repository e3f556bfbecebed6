"""A Hypothesis machine whose rules are the queue's functions, checked against the model."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.property.queue_model import POLICIES, Job, Model
from tests.support.calls import Attempt, Calls, Verdict

__all__ = ["QueueMachine"]

WORKERS = ("w1", "w2", "w3")
SILENCE = timedelta(seconds=10)
WRONG_STATE, UNKNOWN_JOB, KEY_HELD, MISMATCH = "TL019", "TL015", "TL018", "TL027"

tasks = st.sampled_from(sorted(POLICIES))
priorities = st.integers(-2, 2)
delays = st.sampled_from([None, timedelta(0), timedelta(minutes=1), timedelta(minutes=5)])
keys = st.sampled_from([None, None, "k1", "k2"])
workers = st.sampled_from(WORKERS)
queues = st.sampled_from([None, ["a"], ["b"], ["b", "a"]])
which = st.integers(0, 1000)
several = st.lists(which, min_size=1, max_size=6)

# Deletes, because truncating every partition takes longer than an example.
_TABLES = [
    *("waiting", "running", "finished", "dead", "bodies", "events", "lanes"),
    *("unique_keys", "idempotency_keys", "workers", "queues"),
]
_EMPTY = "; ".join(
    [
        "set session_replication_role = replica",
        *(f"delete from trunkline_internal.{table}" for table in _TABLES),
        "delete from trunkline_guard.states",
        "delete from trunkline_guard.ends",
        "update trunkline_internal.duties set state = '{}', runs = 0",
        "reset session_replication_role",
    ]
)

_ALL = """
select job_id, state, attempt, failures, crashes, deferrals, priority, run_at, worker,
  cancel_requested_at is not null, unique_key, max_attempts, errors
from trunkline_internal.all_jobs
cross join lateral (
  select count(*) as errors from trunkline_internal.events as e
  where e.job_id = all_jobs.job_id and e.kind in ('failed', 'lost')
) as e
"""


class QueueMachine(RuleBasedStateMachine):
    """Rules are the functions of the queue, the passing of time and the death of workers."""

    def __init__(self, connections: Mapping[str, psycopg.Connection[Any]]) -> None:
        super().__init__()
        self.behind = connections["superuser"]
        self.behind.execute(_EMPTY.encode())
        self.producer, self.worker, self.operator = (
            Calls(connections[role]) for role in ("producer", "worker", "operator")
        )
        self.model = Model()
        self.attempts: list[Attempt] = []
        self.positions: dict[str, dict[str, Any]] = {}

    @initialize()
    def register(self) -> None:
        for name, policy in POLICIES.items():
            self.producer.register(
                name,
                queue=policy.queue,
                lease=policy.lease,
                hard_limit=policy.hard_limit,
                max_attempts=policy.max_attempts,
                unique_until=policy.unique_until,
                backoff={"base": 60, "factor": 2, "cap": 600, "jitter": 0},
            )

    # Producing

    def _expect(self, request: dict[str, Any], answer: Any) -> None:
        """Check an answer of enqueue and take it into the model."""
        key, repeat = request.get("unique_key"), request.get("idempotency_key")
        if repeat in self.model.answers:
            assert not answer.created
            assert answer.job_id == self.model.answers[repeat][1]
            return
        if key in self.model.keys:
            holder = self.model.keys[key]
            assert (answer.job_id, answer.created) == (holder, False)
            self.model.raise_priority(holder, request["priority"])
        else:
            assert answer.created
            job = Job(request["task"], request["priority"], answer.run_at, key)
            self.model.add(answer.job_id, job)
        if repeat:
            self.model.answers[repeat] = (request["task"], answer.job_id)

    @rule(task=tasks, priority=priorities, delay=delays, key=keys, repeat=keys)
    def enqueue(
        self, task: str, priority: int, delay: timedelta | None, key: str | None, repeat: str | None
    ) -> None:
        request: dict[str, Any] = {"task": task, "priority": priority, "delay": delay}
        request |= {"unique_key": key, "idempotency_key": repeat}
        known = self.model.answers.get(repeat or "")
        if known and known[0] != task:
            assert _refusal(lambda: self.producer.enqueue(**request)) == MISMATCH
            return
        self._expect(request, self.producer.enqueue(**request))

    @rule(
        task=tasks, priority=priorities, delay=delays, given=st.lists(keys, min_size=1, max_size=5)
    )
    def enqueue_many(
        self, task: str, priority: int, delay: timedelta | None, given: list[str | None]
    ) -> None:
        requests: list[dict[str, Any]] = [
            {"task": task, "priority": priority, "unique_key": key} for key in given
        ]
        wait = None if delay is None else str(delay)
        answers = self.producer.enqueue_many([r | {"delay": wait} for r in requests])
        assert len(answers) == len(requests)
        for request, answer in zip(requests, answers, strict=True):
            self._expect(request, answer)

    # Working

    @rule(name=workers, wanted=queues, limit=st.integers(1, 5), kept=st.booleans())
    def claim(self, name: str, wanted: list[str] | None, limit: int, kept: bool) -> None:
        place = f"{name} {wanted}"
        position = self.positions.get(place, {}) if kept else None
        due = self.model.claimable(wanted, self.worker.clock())
        claim = self.worker.claim(name, limit, queues=wanted, position=position)
        late = self.model.claimable(wanted, self.worker.clock())
        expected = [self.model.best(ids, wanted, limit) for ids in (due, late)]
        assert self.model.best(claim.jobs, wanted, limit) in expected
        assert set(claim.jobs) <= set(late)
        found = [self.model.best([job], wanted, 1)[0] for job in claim.jobs]
        assert found == sorted(found), "best first"
        assert (claim.position is not None) == kept
        if claim.position is not None:
            self.positions[place] = claim.position
        for row in claim.rows:
            self.model.start(row.job_id, name, row.lease_expires_at, row.hard_deadline)
            assert row.attempt == self.model.jobs[row.job_id].attempt
        self.attempts += claim.attempts

    def _some(self, chosen: list[int]) -> list[Attempt]:
        """Attempts that somebody held once, the latest among them often; perhaps one twice."""
        return [self.attempts[-1 - n % min(len(self.attempts), 12)] for n in chosen]

    def _batch(
        self, function: str, name: str, chosen: list[int], **more: Any
    ) -> tuple[list[Verdict], set[UUID]]:
        """Call it on some attempts; check who is told ok and return whose attempt ends."""
        some = self._some(chosen)
        mine = {a.job for a in some if self.model.holds(a.job, a.number, name)}
        verdicts = self.worker.batch(function, name, some, **more)
        assert [(v.job, v.attempt) for v in verdicts] == [(a.job, a.number) for a in some]
        for verdict in verdicts:
            held = self.model.holds(verdict.job, verdict.attempt, name)
            assert (verdict.verdict == "ok") == held, (verdict, held)
        return verdicts, mine

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several)
    def heartbeat(self, name: str, chosen: list[int]) -> None:
        some = self._some(chosen)
        now = self.worker.clock()
        for verdict in self.worker.batch("heartbeat", name, some):
            job = self.model.jobs.get(verdict.job)
            if job is None or not self.model.holds(verdict.job, verdict.attempt, name):
                assert verdict.verdict == "lost"
                continue
            assert job.deadline is not None
            expired = job.deadline <= now
            expected = "cancel" if job.cancel_asked else "lost" if expired else "ok"
            assert verdict.verdict == expected
            if not expired:
                assert verdict.run_at is not None
                assert job.lease_until is not None
                assert verdict.run_at <= job.deadline
                job.lease_until = verdict.run_at

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several)
    def complete(self, name: str, chosen: list[int]) -> None:
        some = self._some(chosen)
        mine = {a for a in some if self.model.holds(a.job, a.number, name)}
        done = {
            a
            for a in some
            if (job := self.model.jobs.get(a.job))
            and (job.state, job.attempt, job.worker) == ("completed", a.number, name)
        }
        verdicts = self.worker.batch("complete", name, some)
        for attempt, verdict in zip(some, verdicts, strict=True):
            expected = "ok" if attempt in mine else "already" if attempt in done else "lost"
            assert verdict.verdict == expected, (attempt, verdict)
        for attempt in mine:
            self.model.end(attempt.job, "completed")

    def _apply(
        self, verdicts: list[Verdict], mine: set[UUID], decide: Callable[[UUID], str]
    ) -> None:
        told = {v.job: v for v in verdicts if v.verdict == "ok"}
        assert set(told) == mine
        for job in mine:
            state = decide(job)
            expected = ("scheduled", "ready") if state == "waiting" else (state,)
            assert told[job].state in expected
            self.model.end(job, state, told[job].run_at)

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several, retryable=st.booleans())
    def fail(self, name: str, chosen: list[int], retryable: bool) -> None:
        verdicts, mine = self._batch("fail", name, chosen, retryable=[retryable] * len(chosen))
        self._apply(verdicts, mine, lambda job: self.model.fail(job, retryable))

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several, delay=delays)
    def snooze(self, name: str, chosen: list[int], delay: timedelta | None) -> None:
        verdicts, mine = self._batch("snooze", name, chosen, delays=[delay] * len(chosen))
        self._apply(verdicts, mine, self.model.defer)

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several)
    def release(self, name: str, chosen: list[int]) -> None:
        verdicts, mine = self._batch("release", name, chosen)
        self._apply(verdicts, mine, self.model.defer)

    @precondition(lambda self: self.attempts)
    @rule(name=workers, chosen=several)
    def acknowledge_cancel(self, name: str, chosen: list[int]) -> None:
        verdicts, mine = self._batch("acknowledge_cancel", name, chosen)
        self._apply(verdicts, mine, lambda _: "cancelled")

    # Operating

    def _any(self, number: int) -> UUID:
        """Any job there ever was, or one there never was."""
        known = [*self.model.jobs, *sorted(self.model.discarded)]
        return known[number % len(known)] if known and number % 17 else uuid4()

    @rule(number=which)
    def cancel(self, number: int) -> None:
        id_ = self._any(number)
        job = self.model.jobs.get(id_)
        if job is None:
            assert _refusal(lambda: self.operator.change("cancel", id_)) == UNKNOWN_JOB
            return
        answer = self.operator.change("cancel", id_)
        if job.state == "waiting":
            assert (answer.outcome, answer.state) == ("cancelled", "cancelled")
            self.model.end(id_, "cancelled")
        elif job.state == "running":
            assert (answer.outcome, answer.state) == ("requested", "running")
            job.cancel_asked = True
        else:
            assert (answer.outcome, answer.state) == ("ended", job.state)

    @rule(number=which)
    def retry(self, number: int) -> None:
        id_ = self._any(number)
        job = self.model.jobs.get(id_)
        holder = self.model.keys.get(job.unique_key) if job and job.unique_key else None
        if job is None or job.state in {"waiting", "running"}:
            code = _refusal(lambda: self.operator.change("retry", id_))
            assert code == (WRONG_STATE if job else UNKNOWN_JOB)
        elif job.state == "dead" and holder:
            assert _refusal(lambda: self.operator.change("retry", id_)) == KEY_HELD
        elif job.state == "dead":
            answer = self.operator.change("retry", id_)
            assert (answer.job_id, answer.state) == (id_, "ready")
            self.model.replay(id_, answer.run_at)
        else:
            request = {"task": job.task, "priority": job.priority, "unique_key": job.unique_key}
            self._expect(request, self.operator.change("retry", id_))

    @rule(number=which)
    def discard(self, number: int) -> None:
        id_ = self._any(number)
        job = self.model.jobs.get(id_)
        if job is None or job.state != "dead":
            code = _refusal(lambda: self.operator.change("discard", id_))
            assert code == (WRONG_STATE if job else UNKNOWN_JOB)
            return
        assert self.operator.change("discard", id_).outcome == "discarded"
        self.model.discard(id_)

    @rule(number=which, priority=priorities)
    def reprioritise(self, number: int, priority: int) -> None:
        id_ = self._any(number)
        job = self.model.jobs.get(id_)
        if job is None or job.state != "waiting":
            code = _refusal(lambda: self.operator.change("reprioritise", id_, priority))
            assert code == (WRONG_STATE if job else UNKNOWN_JOB)
            return
        answer = self.operator.change("reprioritise", id_, priority)
        assert answer.outcome == ("unchanged" if job.priority == priority else "reprioritised")
        job.priority = priority

    @rule(queue=st.sampled_from("ab"))
    def pause(self, queue: str) -> None:
        self.operator.value("select trunkline.pause_queue(%s)::text", queue)
        self.model.paused.add(queue)

    @rule(queue=st.sampled_from("ab"))
    def resume(self, queue: str) -> None:
        was_paused = self.operator.value("select trunkline.resume_queue(%s)", queue)
        assert was_paused == (queue in self.model.paused)
        self.model.paused.discard(queue)

    # Time and death

    @rule(minutes=st.sampled_from([1, 4, 11, 30]))
    def pass_time(self, minutes: int) -> None:
        self.behind.execute(
            "select trunkline_test.move_time(%s)", (timedelta(minutes=minutes),)
        ).fetchone()

    @rule(name=workers)
    def appear(self, name: str) -> None:
        """The process starts, or starts anew; it dies by not being seen again."""
        self.worker.value("select trunkline.register_worker(%s)::text", name)
        self.model.workers[name] = self.worker.clock()
        self.model.gone.discard(name)

    @precondition(lambda self: self.model.workers)
    @rule(number=which)
    def pulse(self, number: int) -> None:
        names = sorted(self.model.workers)
        name = names[number % len(names)]
        state = self.worker.value("select trunkline.pulse(%s)", name)
        assert state == ("gone" if name in self.model.gone else "active")
        if state == "active":
            self.model.workers[name] = self.worker.clock()

    @rule()
    def reclaim(self) -> None:
        now = self.worker.clock()
        expected = self.model.lost(now, lambda n: self.model.workers[n] < now - SILENCE)
        taken = {row.job_id: row for row in self.worker.reclaim()}
        assert set(taken) == expected
        for id_, row in taken.items():
            job = self.model.jobs[id_]
            assert (row.attempt, row.worker) == (job.attempt, job.worker)
            state = self.model.lose(id_)
            assert row.state == ("scheduled" if state == "waiting" else state)
            self.model.end(id_, state, row.run_at)

    @rule()
    def promote(self) -> None:
        self.worker.run_duty("promote()")
        due = self.behind.execute(
            "select count(*) from trunkline_internal.waiting where state = 'scheduled' "
            "and run_at <= trunkline.clock() - interval '1 second'"
        ).fetchone()
        assert due == (0,)

    # What must hold after every step

    @invariant()
    def the_tables_say_what_the_model_says(self) -> None:
        """Invariants 1, 2 and 5: every job once, in the state, attempt and counts it must have."""
        now = self.worker.clock()
        found = self.behind.execute(_ALL).fetchall()
        assert len(found) == len({row[0] for row in found}), "a job in two places"
        assert {row[0] for row in found} == set(self.model.jobs)
        for row in found:
            self._compare(self.model.jobs[row[0]], row, now)

    def _compare(self, job: Job, row: Any, now: datetime) -> None:
        _, state, attempt, failures, crashes, deferrals, priority, run_at, *rest = row
        worker, cancel_asked, unique_key, max_attempts, errors = rest
        if job.state == "waiting":
            assert state in {"ready", "scheduled"}
            assert run_at == job.run_at
            assert state == "scheduled" or run_at <= now
        else:
            assert state == job.state
        if job.state == "running":
            assert (worker, cancel_asked) == (job.worker, job.cancel_asked)
        assert (attempt, failures, deferrals) == (job.attempt, job.failures, job.deferrals)
        assert crashes in {None, job.crashes}
        assert (priority, unique_key) == (job.priority, job.unique_key)
        assert failures <= max_attempts == job.policy.max_attempts
        assert attempt >= failures
        assert errors >= failures or job.state == "cancelled"

    @invariant()
    def keys_are_held_by_live_jobs_only(self) -> None:
        """EX-14: the table of keys is exactly what live jobs hold."""
        found = self.behind.execute(
            "select unique_key, job_id from trunkline_internal.unique_keys"
        ).fetchall()
        assert dict(found) == self.model.keys
        assert set(self.model.keys.values()) <= set(self.model.live())


def _refusal(call: Callable[[], Any]) -> str | None:
    """Return the SQLSTATE of the refusal that the call must meet."""
    with pytest.raises(psycopg.Error) as refused:
        call()
    return refused.value.sqlstate
