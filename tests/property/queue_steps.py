"""Steps of a story about the queue: each calls a function and checks its answer by the model."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from tests.property.queue_model import POLICIES, Job, Model
from tests.support.calls import Attempt, Calls, Verdict
from tests.support.internals import jobs, periodic, rows

__all__ = ["ENDS", "OPERATIONS", "QueueSteps"]

SILENCE = timedelta(seconds=10)
WRONG_STATE, UNKNOWN_JOB, KEY_HELD, MISMATCH = "TL019", "TL015", "TL018", "TL027"

ENDS = ("complete", "fail", "snooze", "release", "acknowledge_cancel", "suspend")
OPERATIONS = ("cancel", "retry", "discard", "reprioritise")

_SLEEP = "select (trunkline.begin_wait(%s, %s, %s, 1, 'sleep', 'sleep', %s, null, %s)).outcome"
_TABLES = [
    *("waiting", "running", "finished", "dead", "bodies", "events", "lanes"),
    *("unique_keys", "idempotency_keys", "workers", "queues"),
]


class QueueSteps:
    """The functions of the queue, the passing of time, the death of workers; and the invariants."""

    def __init__(self, connections: Mapping[str, psycopg.Connection[Any]]) -> None:
        self.behind = connections["superuser"]
        self._empty()
        self.producer, self.worker, self.operator = (
            Calls(connections[role]) for role in ("producer", "worker", "operator")
        )
        self.model = Model()
        self.attempts: list[Attempt] = []
        self.positions: dict[str, dict[str, Any]] = {}
        self.seen: Counter[str] = Counter()

    def _empty(self) -> None:
        # Without triggers: the guard allows no such change.
        self.behind.execute("set session_replication_role = replica")
        rows.clear(self.behind, *_TABLES)
        self.behind.execute("delete from trunkline_guard.states; delete from trunkline_guard.ends")
        periodic.forget_runs(self.behind)
        self.behind.execute("reset session_replication_role")

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
        self.seen["enqueue new" if answer.created else "enqueue duplicate"] += 1
        if repeat in self.model.answers:
            assert not answer.created
            assert answer.job_id == self.model.answers[repeat][1]
            return
        holder = self.model.keys.get((request["task"], key or ""))
        if holder is not None:
            assert (answer.job_id, answer.created) == (holder, False)
            self.model.raise_priority(holder, request["priority"])
        else:
            assert answer.created
            job = Job(request["task"], request["priority"], answer.run_at, key)
            self.model.add(answer.job_id, job)
        if repeat:
            self.model.answers[repeat] = (request["task"], answer.job_id)

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
        self.seen[f"claim {'from a position' if kept else 'in full'}"] += len(claim.rows)
        for row in claim.rows:
            self.model.start(row.job_id, name, row.lease_expires_at, row.hard_deadline)
            assert row.attempt == self.model.jobs[row.job_id].attempt
        self.attempts += claim.attempts

    def some(self, chosen: Sequence[int]) -> list[Attempt]:
        """Attempts that are held, and now and then one that was; perhaps one of them twice."""
        held = [a for a in self.attempts if self.model.holds(*a)]
        pools = [self.attempts[-10:], *([held or self.attempts[-10:]] * 3)]
        return [pools[n % 4][n // 4 % len(pools[n % 4])] for n in chosen]

    def _batch(
        self, function: str, name: str, some: list[Attempt], **more: Any
    ) -> dict[UUID, Verdict]:
        """Call it; check what each attempt is told and return the jobs whose attempt it ended."""
        expected = [self._verdict(function, name, attempt) for attempt in some]
        verdicts = self.worker.batch(function, name, some, **more)
        told = [(v.job, v.attempt, v.verdict) for v in verdicts]
        asked = zip(some, expected, strict=True)
        assert told == [(a.job, a.number, verdict) for a, verdict in asked]
        self.seen.update(f"{function} {verdict}" for verdict in expected)
        return {v.job: v for v in verdicts if v.verdict in {"ok", "cancel"}}

    def _verdict(self, function: str, name: str, attempt: Attempt) -> str:
        if self.model.holds(attempt.job, attempt.number, name):
            told = self.model.jobs[attempt.job].cancel_told
            return "cancel" if function == "complete" and told else "ok"
        job = self.model.jobs.get(attempt.job)
        if function != "complete" or job is None:
            return "lost"
        done = (job.state, job.attempt, job.worker) == ("completed", attempt.number, name)
        return "already" if done else "lost"

    def end(
        self,
        function: str,
        name: str,
        some: list[Attempt],
        retryable: bool,
        delay: timedelta | None,
    ) -> None:
        """Let the worker end these attempts, its own or not, in one of the six ways."""
        more: dict[str, Any] = {}
        if function == "fail":
            more["retryable"] = [retryable] * len(some)
        elif function == "snooze":
            more["delays"] = [delay] * len(some)
        elif function == "suspend" and delay is not None:
            self._begin_sleeps(name, some, delay)
        for job, verdict in self._batch(function, name, some, **more).items():
            state = self._next_state(function, job, retryable)
            expected = ("scheduled", "ready") if state == "waiting" else (state,)
            assert verdict.state in expected
            self.seen[f"{function} to {state}"] += 1
            self.model.end(job, state, verdict.run_at)

    def _begin_sleeps(self, name: str, some: list[Attempt], delay: timedelta) -> None:
        """Let the attempts that the worker holds wait; without a wait, they continue at once."""
        for attempt in dict.fromkeys(some):
            if self.model.holds(attempt.job, attempt.number, name):
                job = self.model.jobs[attempt.job]
                key = f"attempt {attempt.number}"
                outcome = self.worker.value(_SLEEP, name, *attempt[:2], key, delay)
                assert outcome == ("cancel" if job.cancel_asked else "wait" if delay else "over")
                job.cancel_told = job.cancel_asked

    def _next_state(self, function: str, job: UUID, retryable: bool) -> str:
        if function == "complete":
            return "cancelled" if self.model.jobs[job].cancel_told else "completed"
        if function == "acknowledge_cancel":
            return "cancelled"
        if function == "suspend":
            return "cancelled" if self.model.jobs[job].cancel_asked else "waiting"
        return self.model.fail(job, retryable) if function == "fail" else self.model.defer(job)

    def heartbeat(self, name: str, some: list[Attempt]) -> None:
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
            job.cancel_told = job.cancel_asked
            self.seen[f"heartbeat {expected}"] += 1
            if not expired:
                assert verdict.run_at is not None
                assert verdict.run_at <= job.deadline
                job.lease_until = verdict.run_at

    # Operating

    def _any(self, number: int) -> UUID:
        """A live job or a dead one, any there ever was, or one there never was."""
        every = list(self.model.jobs)
        live = self.model.live()
        dead = [id_ for id_ in every if self.model.jobs[id_].state == "dead"]
        pools = [live, dead, dead, [*every, *self.model.discarded]]
        pool = pools[number % 4] or every
        return pool[number // 4 % len(pool)] if pool and number % 17 else uuid4()

    def operate(self, function: str, number: int, priority: int) -> None:
        """Cancel, retry, discard or reprioritise any job."""
        self.change(function, self._any(number), priority)

    def change(self, function: str, id_: UUID, priority: int = 0) -> None:
        """Do it to this job, or see it refused by the right code."""
        more = (priority,) if function == "reprioritise" else ()
        job = self.model.jobs.get(id_)
        code = UNKNOWN_JOB if job is None else self._refused(function, job)
        self.seen[f"{function} {code or 'done'}"] += 1
        if job is None or code:
            assert _refusal(lambda: self.operator.change(function, id_, *more)) == code
            return
        answer = self.operator.change(function, id_, *more)
        if function == "cancel":
            self._cancelled(id_, job, answer)
        elif function == "retry":
            self._retried(id_, job, answer)
        elif function == "discard":
            assert answer.outcome == "discarded"
            self.model.discard(id_)
        else:
            assert answer.outcome == ("unchanged" if job.priority == priority else "reprioritised")
            job.priority = priority

    def _refused(self, function: str, job: Job) -> str | None:
        allowed = {
            "cancel": {job.state},
            "retry": {"dead", "completed", "cancelled"},
            "discard": {"dead"},
            "reprioritise": {"waiting"},
        }[function]
        if job.state not in allowed:
            return WRONG_STATE
        held = (job.task, job.unique_key) in self.model.keys
        if (function, job.state) == ("retry", "dead") and held:
            return KEY_HELD
        return None

    def _cancelled(self, id_: UUID, job: Job, answer: Any) -> None:
        if job.state == "waiting":
            assert (answer.outcome, answer.state) == ("cancelled", "cancelled")
            self.model.end(id_, "cancelled")
        elif job.state == "running":
            assert (answer.outcome, answer.state) == ("requested", "running")
            job.cancel_asked = True
        else:
            assert (answer.outcome, answer.state) == ("ended", job.state)

    def _retried(self, id_: UUID, job: Job, answer: Any) -> None:
        if job.state == "dead":
            assert (answer.job_id, answer.state) == (id_, "ready")
            self.seen["retry of a dead letter"] += 1
            self.model.replay(id_, answer.run_at)
            return
        made = self.model.jobs.get(job.retried_as) if job.retried_as else None
        if made is not None and made.state in {"waiting", "running"}:
            self.seen["retry again"] += 1
            assert (answer.job_id, answer.created) == (job.retried_as, False)
            return
        request = {"task": job.task, "priority": job.priority, "unique_key": job.unique_key}
        self._expect(request, answer)
        job.retried_as = answer.job_id

    def pause(self, queue: str) -> None:
        self.operator.value("select trunkline.pause_queue(%s)::text", queue)
        self.model.paused.add(queue)

    def resume(self, queue: str) -> None:
        was_paused = self.operator.value("select trunkline.resume_queue(%s)", queue)
        assert was_paused == (queue in self.model.paused)
        self.model.paused.discard(queue)

    # Time and death

    def pass_time(self, minutes: int) -> None:
        self.behind.execute(
            "select trunkline_test.move_time(%s)", (timedelta(minutes=minutes),)
        ).fetchone()

    def appear(self, name: str) -> None:
        """The process starts, or starts anew; it dies by not being seen again."""
        self.worker.value("select trunkline.register_worker(%s)::text", name)
        self.model.workers[name] = self.worker.clock()
        self.model.gone.discard(name)

    def pulse(self, name: str) -> None:
        state = self.worker.value("select trunkline.pulse(%s)", name)
        assert state == ("gone" if name in self.model.gone else "active")
        if state == "active":
            self.model.workers[name] = self.worker.clock()

    def reclaim(self) -> None:
        now = self.worker.clock()
        expected = self.model.lost(now, lambda n: self.model.workers[n] < now - SILENCE)
        taken = {row.job_id: row for row in self.worker.reclaim()}
        assert set(taken) == expected
        for id_, row in taken.items():
            job = self.model.jobs[id_]
            assert (row.attempt, row.worker) == (job.attempt, job.worker)
            state = self.model.lose(id_)
            self.seen[f"reclaim to {state}"] += 1
            self.seen["reclaim from the dead"] += job.worker in self.model.gone
            assert row.state == ("scheduled" if state == "waiting" else state)
            self.model.end(id_, state, row.run_at)

    def promote(self) -> None:
        self.worker.run_duty("promote()")
        assert jobs.unpromoted(self.behind) == 0

    # What must hold after every step

    def check(self) -> None:
        """Look at all tables."""
        self._jobs_are_as_the_model_says()
        self._keys_are_held_by_live_jobs_only()

    def _jobs_are_as_the_model_says(self) -> None:
        """Invariants 1, 2 and 5: every job once, in the state, attempt and counts it must have."""
        now = self.worker.clock()
        found = jobs.all_jobs(self.behind)
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

    def _keys_are_held_by_live_jobs_only(self) -> None:
        """EX-14: the table of keys is exactly what live jobs hold."""
        held = {(task, key): job for task, key, job in rows.unique_keys(self.behind)}
        assert held == self.model.keys
        assert set(self.model.keys.values()) <= set(self.model.live())


def _refusal(call: Callable[[], Any]) -> str | None:
    """Return the SQLSTATE of the refusal that the call must meet."""
    with pytest.raises(psycopg.Error) as refused:
        call()
    return refused.value.sqlstate
