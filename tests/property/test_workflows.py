"""Random graphs with maps, whose jobs complete, fail, wait, are lost, cancelled and retried,
against a model."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any
from uuid import UUID

import hypothesis
import pytest
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from tests.property.workflow_model import STOPPABLE, WAITS, Model, Step
from tests.support import guard
from tests.support.calls import Attempt
from tests.support.databases import Database
from tests.support.internals import jobs, workflows
from tests.workflows.flow import Flow

_NUMBERS = itertools.count()
_SHOWN = {"gone": "cancelled", "scheduled": "ready"}
_RESULTS = [[], [1], [1, 2, 3], None, {"no": "array"}]
_BEGIN = "select (trunkline.begin_wait('w', %s, %s, 1, %s, %s, '#1', null, %s)).outcome"
_SEND = "select outcome from trunkline.send_event(%s, '1', %s)"


@pytest.fixture
def flow(database: Database) -> Flow:
    guard.install(database)
    found = Flow(database)
    for name, tries in (("once", 1), ("twice", 2)):
        found.producer.register(name, max_attempts=tries, backoff={"base": 0})
    found.producer.register("told", queue="callbacks")
    return found


@st.composite
def _graphs(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 6))):
        names = [step.name for step in steps]
        after = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
        step = Step(f"s{number}", after, [], is_set=True, tries=draw(st.integers(1, 2)))
        steps.append(step)
        if names and draw(st.integers(1, 4)) == 1:
            step.map_over, step.expanded = draw(st.sampled_from(names)), False
            step.after = sorted({*after, step.map_over})
            continue
        size = draw(st.sampled_from([None, None, None, 0, 1, 2, 3]))
        step.items = ["blocked"] * (1 if size is None else size)
        step.is_set = size is not None
        step.result = None if step.is_set else draw(st.sampled_from(_RESULTS))
    return steps


class _Run:
    """One workflow in the database, in a queue of its own, next to its model."""

    def __init__(self, flow: Flow, steps: list[Step]) -> None:
        self.flow = flow
        self.queue = f"q{next(_NUMBERS)}"
        self.model = Model(steps)
        payload = {"queue": self.queue, "workflow": {"$workflow": True}}
        callback = {"task": "told", "payload": payload}
        started = flow.start(
            [self._document(step) for step in steps],
            on_completed=callback,
            on_failure=callback,
            on_cancel=callback,
        )
        self.id: UUID = started.workflow_id
        self.held: dict[tuple[str, int], Attempt] = {}

    def _document(self, step: Step) -> dict[str, Any]:
        task = "once" if step.tries == 1 else "twice"
        after = [name for name in step.after if name != step.map_over]
        document = {"name": step.name, "task": task, "after": after, "queue": self.queue}
        if step.map_over is not None:
            return document | {"map": step.map_over}
        return document | ({"items": [{}] * len(step.items)} if step.is_set else {})

    def rows(self) -> dict[tuple[str, int], tuple[str, UUID]]:
        found = self.flow.operator.connection.execute(
            "select s.name, coalesce(j.workflow_item, 0), case when j.reason = 'suspended'"
            "   and j.state in ('blocked', 'scheduled') then 'suspended' else j.state end, j.job_id"
            " from trunkline.jobs as j join trunkline.workflow_steps as s"
            "   on s.workflow_id = j.workflow_id and s.place = j.workflow_step"
            " where j.workflow_id = %s",
            (self.id,),
        ).fetchall()
        return {(name, item): (_SHOWN.get(state, state), job) for name, item, state, job in found}

    def check(self) -> None:
        model = self.model
        shown = {key: state for key, (state, _) in self.rows().items()}
        wanted_jobs = {key: _SHOWN.get(state, state) for key, state in model.jobs().items()}
        for key in [key for key, state in wanted_jobs.items() if state == "due"]:
            # A claim may have promoted it without taking it.
            wanted_jobs[key] = shown[key] if shown[key] in {"ready", "suspended"} else "due"
        assert shown == wanted_jobs
        assert self.flow.steps(self.id) == {s.name: s.state for s in model.steps.values()}
        found = self.flow.workflow(self.id)
        wanted = {"queued", "running"} if model.state == "live" else {model.state}
        assert found.state in wanted
        assert found.generation == model.generation
        told = self.flow.operator.connection.execute(
            "select payload -> 'workflow' ->> 'generation' from trunkline.jobs"
            " where queue = 'callbacks' and payload ->> 'queue' = %s order by job_id",
            (self.queue,),
        ).fetchall()
        assert len(told) == len({*told}) == model.ends

    def claim(self, limit: int) -> None:
        claimed = self.flow.worker.claim("w", limit, queues=[self.queue])
        by_job = {job: key for key, (_, job) in self.rows().items()}
        for attempt in claimed.attempts:
            self.held[by_job[attempt.job]] = attempt
            self.model.claim(*by_job[attempt.job])

    def complete(self, keys: list[tuple[str, int]]) -> None:
        results = [Jsonb(self.model.steps[name].result) for name, _ in keys]
        attempts = [self.held.pop(key) for key in keys]
        self.flow.worker.batch("complete", "w", attempts, results=results)
        for key in keys:
            self.model.steps[key[0]].items[key[1]] = "completed"
        self.model.settle()

    def fail(self, key: tuple[str, int]) -> None:
        self.flow.worker.batch("fail", "w", [self.held.pop(key)])
        self.model.fail(*key)

    def wait(self, key: tuple[str, int], names: list[str]) -> None:
        """Let a handler wait for these at once, and suspend it unless all are over."""
        attempt = self.held[key]
        waits = self.model.waits_of(*key)
        waits.open.clear()
        for name in names:
            if name in waits.recorded:
                continue
            kind, limit = WAITS[name]
            timeout = None if limit is None else f"{limit} minutes"
            outcome = self.flow.worker.value(
                _BEGIN, attempt.job, attempt.number, kind, name, timeout
            )
            if self.model.stopping:
                assert outcome == "cancel"
                break
            assert outcome == waits.begin(name, self.model.now)
        if waits.open or self.model.stopping:
            self.flow.worker.batch("suspend", "w", [self.held.pop(key)])
            self.model.suspend(*key)

    def send(self, key: tuple[str, int], event: str) -> None:
        """Send an event to a job that has not ended."""
        waits = self.model.waits_of(*key)
        states = self.model.steps[key[0]].items
        outcome = self.flow.producer.value(_SEND, event, self.rows()[key][1])
        if event in waits.events:
            assert outcome == "already"
        elif states[key[1]] == "suspended":
            assert outcome == ("delivered" if event in waits.open else "stored")
        self.model.send(*key, event)

    def pass_time(self) -> None:
        self.flow.database.move_time("10 minutes")
        self.model.now += 10
        self.model.wake()

    def expand(self) -> None:
        """Run the duty until no map is left that it could expand."""
        while self.model.unexpanded():
            self.flow.expand()
            self.model.expand()

    def lose(self) -> None:
        workflows.lapse_leases(self.flow.admin.connection)
        self.flow.worker.reclaim()
        # Also wakes suspended jobs before their time: they wait again for the rest.
        jobs.bring_forward(self.flow.admin.connection, "1 hour")
        self.model.wake(early=True)
        held, self.held = self.held, {}
        for key in held:
            self.model.steps[key[0]].failures[key[1]] += 1
        for name, item in held:
            step = self.model.steps[name]
            if self.model.stopping:
                step.items[item] = "cancelled"
            else:
                step.items[item] = "ready" if step.failures[item] < step.tries else "dead"
        self.model.settle()

    def keys(self, *states: str) -> list[tuple[str, int]]:
        return [key for key, state in self.model.jobs().items() if state in states]

    def choices(self) -> dict[Callable[[Any], Any], int]:
        """Return what can happen now, with weights."""
        is_stopping = self.model.state == "live" and self.model.stopping
        dead, refused = bool(self.keys("dead")), bool(self.model.refused_maps())
        held, suspended = bool(self.held), bool(self.keys("suspended"))
        waiting, claimable = bool(self.keys(*STOPPABLE)), bool(self.keys("ready", "due"))
        weights = {
            self._claim: 1 + 7 * claimable,
            lambda _: self.flow.advance(): 1,
            self._complete: 6 * held,
            self._fail: 2 * held,
            lambda _: self.lose(): 2 * held,
            self._wait: 5 * held,
            self._cancel: waiting + suspended,
            self._send: waiting + 2 * suspended,
            lambda _: self.pass_time(): 2 * suspended,
            lambda _: self.expand(): 4 * bool(self.model.unexpanded()),
            self._retry: 3 * (dead and not is_stopping),
            lambda _: self._retry_workflow(): 3 * ((dead or refused) and not is_stopping),
            lambda _: self._stop(): self.model.state == "live",
        }
        return {action: int(weight) for action, weight in weights.items() if weight}

    def act(self, draw: Any) -> None:
        choices = self.choices()
        actions = [action for action, weight in choices.items() for _ in range(weight)]
        actions[draw(st.integers(0, len(actions) - 1))](draw)

    def _claim(self, draw: Any) -> None:
        self.claim(draw(st.integers(1, 4)))

    def _complete(self, draw: Any) -> None:
        self.complete(draw(st.lists(st.sampled_from([*self.held]), unique=True, min_size=1)))

    def _fail(self, draw: Any) -> None:
        self.fail(draw(st.sampled_from([*self.held])))

    def _wait(self, draw: Any) -> None:
        names = st.lists(st.sampled_from([*WAITS]), unique=True, min_size=1, max_size=2)
        self.wait(draw(st.sampled_from([*self.held])), draw(names))

    def _one_waiting(self, draw: Any) -> tuple[str, int]:
        """Choose a job that does not run, in half of the cases a suspended one."""
        suspended = self.keys("suspended")
        use_suspended = bool(suspended) and draw(st.booleans())
        key: tuple[str, int] = draw(
            st.sampled_from(suspended if use_suspended else self.keys(*STOPPABLE))
        )
        return key

    def _send(self, draw: Any) -> None:
        self.send(self._one_waiting(draw), draw(st.sampled_from(["a", "b"])))

    def _cancel(self, draw: Any) -> None:
        key = self._one_waiting(draw)
        self.flow.producer.change("cancel", self.rows()[key][1])
        self.model.cancel(*key)

    def _retry(self, draw: Any) -> None:
        key = draw(st.sampled_from(self.keys("dead")))
        self.flow.operator.change("retry", self.rows()[key][1])
        self.model.retry([key])

    def _retry_workflow(self) -> None:
        self.flow.retry(self.id)
        self.model.retry([*self.keys("dead"), *self.model.refused_maps()])

    def _stop(self) -> None:
        self.flow.cancel(self.id)
        self.model.stop()

    @property
    def is_over(self) -> bool:
        """Whether the workflow has ended and nothing is left that a retry could run."""
        return self.model.state != "live" and not (self.keys("dead") or self.model.refused_maps())

    def finish(self) -> None:
        """Run what is left: the workflow must come to an end."""
        while self.model.state == "live":
            self.expand()
            if "suspended" in self.model.jobs().values():
                self.pass_time()
            for key, state in self.model.jobs().items():
                if state == "suspended":
                    self.send(key, *self.model.waits_of(*key).open)
            self.claim(100)
            if not (self.held or self.model.unexpanded()):
                break
            if self.held:
                self.complete([*self.held])
        assert self.model.state != "live"
        self.check()


@hypothesis.settings(
    max_examples=int(os.environ.get("WORKFLOW_EXAMPLES", "50")),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(steps=_graphs(), data=st.data())
def test_a_workflow_ends_once_for_each_generation_and_in_the_right_state(
    flow: Flow, steps: list[Step], data: st.DataObject
) -> None:
    """TA-17, TA-42: no job starts before its dependencies, whatever fails."""
    run = _Run(flow, steps)
    run.check()
    for _ in range(data.draw(st.integers(3, 14))):
        run.act(data.draw)
        run.check()
        if run.is_over:
            break
    run.finish()
