"""A Hypothesis machine whose rules are the calls around one limit, checked against the model."""

from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from psycopg.types.json import Jsonb

from tests.flow.conftest import Desk
from tests.property.limiter_model import TTL, Grant, Job, Model
from tests.property.still import at, begun_anew
from tests.support.calls import Attempt
from tests.support.internals import flow, periodic, rows
from tests.support.waiting import until

__all__ = ["LimiterMachine"]

WORKERS = ("one", "other")
LARGEST = 8
# Often below the largest job, which is set aside then. Claims take a part of large limits each.
parts = st.fixed_dictionaries(
    {
        "requests_per_minute": st.one_of(st.none(), st.integers(1, 6), st.integers(100, 400)),
        "tokens_per_minute": st.one_of(st.none(), st.integers(1, 40), st.integers(300, 900)),
        "concurrency": st.one_of(st.none(), st.integers(1, 6), st.integers(100, 200)),
    }
)
tokens = st.integers(0, LARGEST)
which = st.integers(0, 1000)
# Mostly such that a window, a hold or a grant is just over, or just not.
seconds = st.one_of(
    st.integers(1, 5), st.integers(15, 25), st.integers(55, 65), st.integers(66, 80), st.just(400)
)


_SHOWN = """
select name, in_use, requests_of_minute, requests_of_hour, tokens_of_minute, tokens_of_hour, spent
from trunkline.buckets order by name
"""


class LimiterMachine(RuleBasedStateMachine):
    """Claims of two workers, ends, grants, settlements, a provider that speaks, and the clock."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk
        self.attempts: dict[Any, Attempt] = {}
        self.model = Model({}, 1)

    @initialize(given=parts, slots=st.integers(1, 2), count=st.integers(1, 12), cost=tokens)
    def begin(self, given: dict[str, int | None], slots: int, count: int, cost: int) -> None:
        begun_anew(self.desk)
        rows.clear(self.desk.behind, "grants", "usage")
        periodic.forget_runs(self.desk.behind)
        self.model = Model(dict(given), slots)
        self.desk.set_limit("api", given)
        self.desk.set_limit("doc/{key}", {"concurrency": slots})
        self.arrive(count, cost, None)

    @rule(count=st.integers(1, 8), cost=tokens, key=st.sampled_from([None, "a", "b"]))
    def arrive(self, count: int, cost: int, key: str | None) -> None:
        more: dict[str, Any] = {"task": "keyed", "payload": {"key": key}} if key else {}
        cost = self.model.at_most(cost)
        for job in self.desk.enqueue(count, cost={"tokens": cost}, **more):
            self.model.waiting[job] = Job(cost, key)

    @rule(worker=st.sampled_from(WORKERS), limit=st.integers(1, 12))
    def claim(self, worker: str, limit: int) -> None:
        """Whatever is given fits; where something has to be given, somebody gets it. A claim of
        one clears at least four heads that cannot start and wakes sleepers. A job without a free
        key moves to that key's lane. One that never fits may have to move back before it goes."""
        must = self.model.must_give()
        waiting = self.model.waiting.values()
        heads = sum(not self.model.key_fits(job.key) for job in waiting)
        heads += 2 * sum(not self.model.ever_fits(job.tokens) for job in waiting)
        given = self._claim(worker, limit)
        for turn in range(1 + heads // 4):
            if given or not must:
                return
            given = self._claim(WORKERS[turn % 2], limit)
        assert given or not must, self.model

    def _claim(self, worker: str, limit: int) -> int:
        attempts = self.desk.claim(limit, worker)
        assert len(attempts) <= limit
        for attempt in attempts:
            job = self.model.waiting.pop(attempt.job)
            assert self.model.fits(job.tokens), (attempt, self.model)
            assert self.model.key_fits(job.key), (attempt, self.model)
            job.call, job.settled = self.model.charge(job.tokens), False
            self.model.running[attempt.job] = job
            self.attempts[attempt.job] = attempt
        return len(attempts)

    @precondition(lambda self: self.model.running)
    @rule(how=st.sampled_from(["complete", "fail", "release"]), chosen=which)
    def end(self, how: str, chosen: int) -> None:
        job = list(self.model.running)[chosen % len(self.model.running)]
        more = {"delays": ["0 seconds"]} if how == "fail" else {}
        self.desk.end([self.attempts[job]], how, **more)
        found = self.model.running.pop(job)
        if how != "complete":
            self.model.waiting[job] = found
            found.due = self.model.now

    @precondition(lambda self: self.model.running)
    @rule()
    def lose(self) -> None:
        """Whose lease is over comes back, with its slot."""
        for row in self.desk.worker.reclaim():
            self.model.waiting[row.job_id] = self.model.running.pop(row.job_id)
            self.model.waiting[row.job_id].due = self.model.now

    @precondition(lambda self: self.model.running)
    @rule(chosen=which, actual=st.integers(0, 2 * LARGEST))
    def settle_job(self, chosen: int, actual: int) -> None:
        found = list(self.model.running)[chosen % len(self.model.running)]
        attempt, job = self.attempts[found], self.model.running[found]
        answer = self.desk.worker.value(
            "select trunkline.settle_job(%s, %s, %s)",
            *(attempt.job, attempt.number, Jsonb({"tokens": actual})),
        )
        assert answer == ("already" if job.settled else "settled")
        if not job.settled and job.call is not None:
            job.call.settle(self.model.now, actual)
            job.settled = True

    @rule(cost=tokens)
    def acquire(self, cost: int) -> None:
        """Outside of any job: it has to fit, and gets it if it does."""
        cost = self.model.at_most(cost)
        grant: UUID | None = self.desk.worker.value(
            "select grant_id from trunkline.acquire('api', %s)", Jsonb({"tokens": cost})
        )
        if grant is not None:
            assert self.model.fits(cost), self.model
            now = self.model.now
            self.model.grants[grant] = Grant(self.model.charge(cost), now, now + TTL)
        else:
            assert not self.model.fits(cost, careful=True), self.model

    @precondition(lambda self: self.model.grants)
    @rule(chosen=which, actual=st.integers(0, 2 * LARGEST))
    def settle(self, chosen: int, actual: int) -> None:
        grant = list(self.model.grants)[chosen % len(self.model.grants)]
        answer = self.desk.worker.value(
            "select trunkline.settle(%s, %s)", grant, Jsonb({"tokens": actual})
        )
        assert answer == "settled"
        self.model.grants.pop(grant).call.settle(self.model.now, actual)

    @rule(retry_after=st.sampled_from([0, 1, 20, 90]))
    def refuse(self, retry_after: int) -> None:
        """The provider says 429, or that it is over."""
        self.desk.worker.value(
            "select trunkline.observe_limit('api', %s)", Jsonb({"retry_after": retry_after})
        )
        until = self.model.now + retry_after
        self.model.paused_until = max(self.model.paused_until, until) if retry_after else 0

    @rule(given=parts)
    def change(self, given: dict[str, int | None]) -> None:
        """Raise or lower its numbers. What no part of a limit counts is not kept, so that one which
        gets its first slots or its first window begins with none of them taken."""
        changed = {
            name: given[name] or most for name, most in self.model.parts.items() if most is not None
        }
        self.desk.set_limit("api", changed)
        self.model.parts |= changed

    @rule()
    def sweep(self) -> None:
        """Nothing is lost or found by it."""
        self.desk.operator.run_duty("sweep_buckets()")

    @rule(passed=seconds, limit=st.integers(0, 12))
    def wait(self, passed: int, limit: int) -> None:
        """Often somebody looks right after."""
        self._step(passed)
        if limit:
            self.claim(WORKERS[0], limit)

    @precondition(lambda self: self.model.now > 0)
    @rule(back=st.integers(1, 90), then=st.integers(0, 70))
    def set_back(self, back: int, then: int) -> None:
        """By which time duties have run, as they do every few seconds."""
        self.desk.operator.run_duty("sweep_buckets()")
        self._step(-min(back, self.model.now))
        until(self._swept, "no charge lies ahead")
        if then:
            self._step(then)

    def _swept(self) -> bool:
        """A sweep leaves charges alone while transactions run that are older, also of other
        tests on the same server."""
        self.desk.operator.run_duty("sweep_buckets()")
        return flow.adjustments_ahead(self.desk.behind) == 0

    def _step(self, by: int) -> None:
        self.model.pass_time(by)
        at(self.desk, self.model.now)

    @invariant()
    def nobody_is_dead_of_a_limit(self) -> None:
        assert self.desk.operator.value("select count(*) from trunkline.dead_letters") == 0

    @invariant()
    def no_job_that_fits_stays_set_aside(self) -> None:
        """Those that do not may still be on their way there."""
        misfits = sum(not self.model.ever_fits(job.tokens) for job in self.model.waiting.values())
        found = self.desk.operator.value(
            "select coalesce(sum(set_aside), 0) from trunkline.limits where name = 'api'"
        )
        assert found <= misfits, self.model

    @invariant()
    def operators_see_what_claims_count(self) -> None:
        shown = self.desk.operator.connection.execute(_SHOWN).fetchall()
        assert shown == flow.charged(self.desk.behind), self.model

    @invariant()
    def slots_are_of_those_who_run(self) -> None:
        """Nothing leaks, and nothing is given twice."""
        if self.model.parts.get("concurrency") is None or not self.model.calls:
            return
        least, most = self.model.in_use(), self.model.in_use(3)
        assert least <= self.desk.bucket("api")["in_use"] <= most, self.model
