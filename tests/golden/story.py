"""Jobs that go through everything that can become of a job, moved by public functions alone.

`Story` plays each situation once and keeps what callers are told on the way: verdicts, outcomes,
codes of explain, reasons of acquire, states of workers, limits and breakers, and notices. What
lasts (events, dead letters) is read afterwards from the views. No situation here reads or writes a
table of the engine.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.golden.step_story import play_steps
from tests.support.calls import Attempt, Calls
from tests.support.databases import Database

__all__ = ["Story"]


class Story:
    """Everybody at one table, and what they were told: kind of word, then word, then details."""

    def __init__(self, database: Database) -> None:
        # With 0.5 nothing is sampled, and a wait has half of its jitter.
        database.draw(0.5)
        database.move_to_noon()
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.told: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        for calls in (self.producer, self.worker, self.operator):
            calls.connection.add_notice_handler(self._hear)

    def play(self) -> None:
        """Play all situations; each leaves its jobs where they ended."""
        self._succeed_and_fail()
        self._cancel()
        self._defer()
        self._wait()
        self._lose()
        self._limit()
        self._spend()
        self._acquire()
        self._break()
        self._outgrow()
        play_steps(self)
        self._share_keys()
        self._misspell()
        self._look()

    # Short calls that keep the answer.

    def tell(self, kind: str, word: str | None, detail: Any = None) -> None:
        if word is not None:
            self.told[kind][word].append(detail)

    def limit(self, name: str, status: str | None = None, **parts: Any) -> None:
        self.operator.value("select trunkline.set_limit(%s, %s, %s)", name, Jsonb(parts), status)
        for row in self.operator.connection.execute("select status from trunkline.limits"):
            self.tell("status of a limit", row[0])

    def register(self, worker: str, detail: dict[str, Any] | None = None) -> None:
        """Register a worker that stays alive for an hour, however slow the machine is."""
        self.worker.value(
            "select trunkline.register_worker(p_worker => %s, p_pulse_interval => '1 hour',"
            " p_detail => %s)",
            worker,
            detail and Jsonb(detail),
        )

    def start(self, task: str, worker: str = "w1", **arguments: Any) -> Attempt:
        """Enqueue a job of a task and claim it."""
        job = self.producer.enqueue(task, **arguments).job_id
        (attempt,) = self.claim(task, worker)
        assert attempt.job == job
        return attempt

    def claim(self, task: str, worker: str = "w1") -> list[Attempt]:
        return self.worker.claim(worker, 10, tasks=[task]).attempts

    def end(self, function: str, attempt: Attempt, **more: Any) -> None:
        for verdict in self.worker.batch(function, attempt.worker, [attempt], **more):
            self.tell("verdict", verdict.verdict)

    def change(self, function: str, job: UUID, *more: Any) -> None:
        calls = self.operator if function in {"acknowledge", "discard"} else self.producer
        self.tell("outcome", calls.change(function, job, *more).outcome)

    def explain(self, job: UUID) -> list[str]:
        """Ask why a job is where it is, and return the codes."""
        rows = self.producer.connection.execute(
            "select reason, detail from trunkline.explain(%s)", (job,)
        ).fetchall()
        for reason, detail in rows:
            self.tell("explain", reason, detail)
        return [reason for reason, _ in rows]

    def states(self, kind: str) -> None:
        """Read the states that a view shows now."""
        view = f"select state from trunkline.{kind}s"
        for (state,) in self.operator.connection.execute(view.encode()).fetchall():
            self.tell(f"state of a {kind}", state)

    def duties(self) -> None:
        self.worker.connection.execute("select from trunkline.run_duties()")

    def _hear(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.sqlstate and notice.sqlstate.startswith("01TL"):
            self.tell("notice", notice.sqlstate, json.loads(notice.message_detail or "null"))

    # The situations.

    def _succeed_and_fail(self) -> None:
        register = self.producer.register
        register("audited", audit=True, backoff={"base": 0}, max_attempts=5)
        good = self.start("audited", correlation_id="c")
        self.explain(good.job)
        self.end("heartbeat", good)
        self.tell(
            "verdict",
            self.worker.value("select trunkline.progress('w1', %s, 1, 50)", good.job),
        )
        self.end("complete", good)
        self.end("complete", good)
        self.explain(good.job)
        self.operator.change("retry", good.job)
        (again,) = self.claim("audited")
        self.end("complete", again)
        bad = self.start("audited")
        self.end("fail", bad, errors=[Jsonb({"type": "ValueError", "message": "no"})])
        (last,) = self.claim("audited")
        self.end("fail", bad)
        self.end("fail", last, retryable=[False])
        self.explain(bad.job)
        self.change("acknowledge", bad.job)
        self.change("acknowledge", bad.job)
        self.operator.change("retry", bad.job)
        self.end("complete", self.claim("audited")[0])
        register("once", max_attempts=1)
        dead = self.start("once")
        self.end("fail", dead, errors=[Jsonb({"type": "ValueError", "message": "no"})])
        self.change("discard", dead.job, "of no use")

    def _cancel(self) -> None:
        self.producer.register("cancelled", audit=True)
        waiting = self.producer.enqueue("cancelled").job_id
        self.change("reprioritise", waiting, 7)
        self.change("reprioritise", waiting, 7)
        self.change("cancel", waiting, "not needed")
        self.change("cancel", waiting)
        self.explain(waiting)
        soon = self.producer.value("select trunkline.clock() + interval '5 seconds'")
        expiring = self.producer.enqueue("cancelled", expires_at=soon).job_id
        self.explain(expiring)
        self.database.move_time("6 seconds")
        assert self.claim("cancelled") == []
        self.explain(expiring)
        for end in ("acknowledge_cancel", "complete", "fail", "snooze", "release"):
            running = self.start("cancelled")
            self.change("cancel", running.job, "not needed")
            self.change("cancel", running.job)
            self.explain(running.job)
            self.end("heartbeat", running)
            self.end(end, running)
        late = self.start("cancelled")
        self.change("cancel", late.job)
        self.end("complete", late)
        gone = Attempt(UUID(int=1), 1, "w1")
        self.end("complete", gone)

    def _defer(self) -> None:
        self.producer.register("deferred", dead_when_deferred=True)
        self.operator.value("select trunkline.set_setting('max_deferrals', '3')")
        job = self.start("deferred")
        self.end("release", job)
        (job,) = self.claim("deferred")
        self.worker.connection.execute("select trunkline.release_forgotten('w1', '{}')")
        while attempts := self.claim("deferred"):
            self.end("snooze", attempts[0], delays=["10 seconds"])
            self.database.move_time("1 minute")
        self.operator.value("select trunkline.set_setting('max_deferrals', null)")
        self.producer.register("handed")
        handed = self.start("handed")
        self.end("hand_over", handed, errors=[Jsonb({"field": "colour"})])

    def _wait(self) -> None:
        self.producer.register("waited", queue="mail")
        first = self.producer.enqueue("waited").job_id
        second = self.producer.enqueue("waited").job_id
        later = self.producer.enqueue("waited", delay="1 hour").job_id
        self.explain(second)
        self.operator.connection.execute("select trunkline.pause_queue('mail', 'strike')")
        self.operator.value("select trunkline.set_setting('claims_enabled', 'false')")
        self.explain(first)
        self.operator.value("select trunkline.set_setting('claims_enabled', null)")
        self.operator.connection.execute("select trunkline.resume_queue('mail')")
        self.register("w2")
        self.explain(second)
        self.explain(later)
        self.end("complete", self.worker.claim("w2", 1, tasks=["waited"]).attempts[0])
        # Workers of two versions: a job that one of them cannot read waits for the other.
        self.producer.register("shared")
        self.register("red", {"signatures": {"shared": "1"}})
        self.register("blue", {"signatures": {"shared": "2"}})
        handed = self.start("shared", "red")
        self.end("hand_over", handed, errors=[Jsonb({"field": "colour"})])
        self.explain(handed.job)

    def _lose(self) -> None:
        self.producer.register("silent", lease="10 seconds", hard_limit="1 hour", max_attempts=2)
        self.producer.register("endless", lease="1 hour", hard_limit="10 seconds", max_attempts=2)
        self.producer.register("doomed", lease="10 seconds", max_attempts=1)
        self.producer.register("killer", crash_limit=1, lease="1 hour")
        self.producer.register("orphaned", lease="1 hour")
        self.producer.register("unwanted", lease="10 seconds")
        self.worker.connection.execute("select trunkline.register_worker('w3')")
        self.start("silent", "nobody")
        self.start("doomed", "nobody")
        self.start("endless", "nobody")
        self.start("killer", "w3")
        self.start("orphaned", "w3")
        unwanted = self.start("unwanted", "nobody")
        self.change("cancel", unwanted.job)
        self.database.move_time("11 seconds")
        self.duties()
        self.database.move_time("10 minutes")
        self.duties()
        self.states("worker")

    def _limit(self) -> None:
        self.register("w4")
        self.states("worker")
        self.limit("api", requests_per_minute=1, tokens_per_minute=1, concurrency=1)
        self.limit("api", quota=1000, quota_unit="calls", quota_window="24 hours")
        self.producer.register("limited", limits=["api"])
        running = self.start("limited", "w4")
        waiting = self.producer.enqueue("limited").job_id
        assert self.claim("limited", "w4") == []
        assert self.explain(waiting) == ["limit"]
        self.worker.value(
            "select trunkline.observe_limit('api', %s)",
            Jsonb({"retry_after": 3600, "reason": "busy"}),
        )
        assert self.explain(waiting) == ["limit"]
        self.limit("api", "maintenance")
        assert self.explain(waiting) == ["limit"]
        self.database.move_time("20 seconds")
        # It ends long after its claim, without a grant: the notice of a late call.
        self.end("complete", running)
        self.change("cancel", waiting)

    def _spend(self) -> None:
        """Settle what a job took, so that there is something in the ledger."""
        self.limit("spent", tokens_per_hour=1000)
        self.producer.register("usage", limits=["spent"], cost={"tokens": 10})
        attempt = self.start("usage", tenant="acme", payload={"size": 1})
        actual = Jsonb({"tokens": 5, "cost": 0.5})
        settle = "select trunkline.settle_job(%s, %s, %s)"
        outcome = self.worker.value(settle, attempt.job, attempt.number, actual)
        self.tell("outcome of settle_job", outcome)
        self.end("complete", attempt, results=[Jsonb({"pages": 1})])

    def _acquire(self) -> None:
        def acquire(limit: str, **cost: int) -> None:
            row = self.worker.connection.execute(
                "select granted, reason from trunkline.acquire(%s, %s)", (limit, Jsonb(cost))
            ).fetchone()
            assert row is not None
            self.tell("reason of acquire", row[1])

        for part in (
            {"requests_per_minute": 1},
            {"requests_per_hour": 1},
            {"tokens_per_minute": 1},
            {"tokens_per_hour": 1},
            {"concurrency": 1},
            {"quota": 1, "quota_unit": "calls", "quota_window": "24 hours", "quota_buffer": 1},
        ):
            name = next(iter(part))
            self.limit(name, **part)
            for _ in range(2):
                acquire(name, requests=1, tokens=1, units=1)
        for status in ("maintenance", "disabled"):
            self.limit(status, status, concurrency=1)
            acquire(status)
        self.limit("told", concurrency=1)
        self.worker.value(
            "select trunkline.observe_limit('told', %s)", Jsonb({"retry_after": 3600})
        )
        acquire("told")
        self.limit("tripped", concurrency=1, breaker_failures=1)
        self.operator.value("select trunkline.trip_breaker('tripped', 'nonsense')")
        acquire("tripped")
        self.limit("settled", concurrency=5)
        given = self.worker.value("select (trunkline.acquire('settled')).grant_id")
        for grant in (given, given, UUID(int=1)):
            outcome = self.worker.value("select trunkline.settle(%s)", grant)
            self.tell("outcome of settle", outcome)

    def _break(self) -> None:
        self.register("w5")
        self.limit("broken", concurrency=5, breaker_failures=1, breaker_probe_after="5 minutes")
        self.states("breaker")
        self.producer.register("breaking", limits=["broken"], backoff={"base": 3600})
        self.end("fail", self.start("breaking", "w5"))
        waiting = self.producer.enqueue("breaking").job_id
        self.states("breaker")
        assert self.explain(waiting) == ["breaker"]
        self.database.move_time("10 minutes")
        (probe,) = self.claim("breaking", "w5")
        self.states("breaker")
        self.end("complete", probe)
        self.states("breaker")

    def _outgrow(self) -> None:
        self.register("w6")
        self.limit("narrow", tokens_per_minute=1000)
        self.producer.register("large", limits=["narrow"], dead_when_deferred=True)
        job = self.producer.enqueue("large", cost={"tokens": 900}).job_id
        for tokens in (100, 1000, 100):
            self.limit("narrow", tokens_per_minute=tokens)
            self.explain(job)
        self.database.move_time("25 hours")
        self.duties()
        self.explain(job)

    def _share_keys(self) -> None:
        """Two tasks of a profile: the key of one is held by a job of the other."""
        for task in ("stamped", "anchored"):
            self.producer.register(task, profile="papers")
            self.producer.enqueue(task, unique_key="paper 1")

    def _misspell(self) -> None:
        """Pass unknown fields: the refusals list the known ones, as a list or in a sentence.

        Whatever the sentence is, a word of it names a part if it is not refused with the same one.
        """
        unknown = Jsonb([{"task": "once", "nonsense": 1}])
        for function in ("enqueue_many", "register_tasks"):
            for field in self._must_be(f"select trunkline.{function}(%s)", unknown) or ():
                self.tell(f"field of {function}", field)
        for function, limit in (("set_limit", "spelled"), ("observe_limit", "settled")):
            query = f"select trunkline.{function}(%s, %s)"
            sentence = self._must_be(query, limit, Jsonb({"nonsense": 1}))
            for word in re.findall(r"[a-z_]+", str(sentence)):
                if self._must_be(query, limit, Jsonb({word: 1})) != sentence:
                    self.tell(f"part of {function}", word)

    def _must_be(self, query: str, *arguments: Any) -> Any:
        """Return what a refusal asks for; nothing if the call is accepted."""
        try:
            self.operator.value(query, *arguments)
        except psycopg.Error as refusal:
            return json.loads(refusal.diag.message_detail or "null")["must_be"]
        return None

    def _look(self) -> None:
        """Read the words that views and functions have for the installation as a whole."""
        read = self.operator.connection.execute
        for name, ok, detail in read('select "check", ok, detail from trunkline.health()'):
            self.tell("check of health", name, detail)
            assert ok is not None
        self.register("w7")
        self.register("w8")
        self.operator.value("select trunkline.drain_worker('w7')")
        self.worker.connection.execute("select trunkline.stop_worker('w8')")
        self.states("worker")
