"""Ends at the same instant: of transactions that are open together, the last to commit sees all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt, Calls
from tests.support.internals import locks, workflows
from tests.support.waiting import until
from tests.workflows.flow import Flow, job


class _Ender:
    """A worker's connection with a transaction of its own."""

    def __init__(self, flow: Flow) -> None:
        self.connection = flow.database.connect("trunkline_worker")
        self.connection.autocommit = False
        self.calls = Calls(self.connection)

    def complete(self, *attempts: Attempt) -> None:
        self.calls.batch("complete", "w", attempts)


def _apart(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call)
    thread.start()
    return thread


def _wait_for(flow: Flow, locks: list[str]) -> None:
    until(lambda: workflows.live_locks(flow.admin.connection) == locks, "the locks")


def _wait_for_lock(flow: Flow) -> None:
    waiting = (
        "select count(*) from pg_stat_activity"
        " where wait_event_type = 'Lock' and datname = current_database()"
    )
    until(lambda: flow.admin.value(waiting) == 1, "a wait for a lock")


def test_ta_43_two_last_ends_at_the_same_instant_open_the_next_step(flow: Flow) -> None:
    """TA-43: both are uncommitted when they look; the second waits for the first and sees it."""
    started = flow.start([job("a", items=[{}, {}]), job("last", "a")])
    taken = flow.take()
    one, two = _Ender(flow), _Ender(flow)
    one.complete(taken["a/0"])
    # The other job's row was not locked by anybody: a proof that it ends later.
    assert workflows.live_locks(flow.admin.connection) == ["ShareLock"]
    second = _apart(lambda: two.complete(taken["a/1"]))
    _wait_for(flow, ["ExclusiveLock waits", "ShareLock"])
    one.connection.commit()
    second.join()
    two.connection.commit()
    assert flow.run() == ["last"]
    found = flow.workflow(started.workflow_id)
    assert (found.state, found.generation) == ("completed", 1)


def test_two_ends_that_both_see_the_other_locked_end_the_workflow_once(flow: Flow) -> None:
    """Both have deleted their rows before either looks: both want the exclusive lock."""
    flow.producer.register("told", queue="callbacks")
    started = flow.start([job("a", items=[{}, {}])], on_completed={"task": "told"})
    taken = flow.take()
    one, two = _Ender(flow), _Ender(flow)
    # A row lock stands for the moment between the other's deletion and its look.
    flow.admin.connection.autocommit = False
    locks.lock_jobs(flow.admin.connection, "running", taken["a/1"].job)
    one.complete(taken["a/0"])
    flow.admin.connection.rollback()
    flow.admin.connection.autocommit = True
    assert workflows.live_locks(flow.admin.connection) == ["ExclusiveLock"]
    second = _apart(lambda: two.complete(taken["a/1"]))
    _wait_for(flow, ["ExclusiveLock", "ExclusiveLock waits"])
    one.connection.commit()
    second.join()
    two.connection.commit()
    assert flow.state(started.workflow_id) == "completed"
    assert flow.operator.value("select count(*) from trunkline.jobs where task = 'told'") == 1


def test_ends_of_one_step_do_not_wait_for_each_other(flow: Flow) -> None:
    flow.start([job("a", items=[{} for _ in range(6)]), job("last", "a")])
    taken = flow.take(5)
    enders = [_Ender(flow) for _ in taken]
    for ender, attempt in zip(enders, taken.values(), strict=True):
        ender.complete(attempt)
    assert workflows.live_locks(flow.admin.connection) == ["ShareLock"] * 5
    for ender in enders:
        ender.connection.commit()
    assert flow.run() == ["a/5", "last"]


def test_a_rolled_back_end_changes_nothing(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    taken = flow.take()
    one = _Ender(flow)
    one.complete(*taken.values())
    one.connection.rollback()
    assert flow.jobs(started.workflow_id) == {"a": "running", "b": "blocked"}
    flow.complete(*taken.values())
    assert flow.run() == ["b"]


def test_a_blocked_job_that_another_session_holds_is_unblocked_by_the_duty(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    taken = flow.take()
    held = flow.database.superuser()
    held.autocommit = False
    locks.lock_jobs(held, "waiting")
    flow.complete(*taken.values())
    assert flow.jobs(started.workflow_id)["b"] == "blocked"
    assert workflows.marks(flow.admin.connection) == [started.workflow_id]
    held.rollback()
    assert flow.advance() == 1
    assert flow.run() == ["b"]
    assert flow.state(started.workflow_id) == "completed"


def test_a_cancel_of_a_blocked_job_and_the_end_of_its_dependency_do_not_deadlock(
    flow: Flow,
) -> None:
    started = flow.start([job("a"), job("b", "a"), job("c", "b")])
    taken = flow.take()
    canceller = flow.database.connect("trunkline_producer")
    canceller.autocommit = False
    ender = _Ender(flow)
    ender.complete(*taken.values())
    job_id = flow.id_of(started.workflow_id, "b")
    # Waits for the row, which the end has unblocked.
    thread = _apart(lambda: canceller.execute("select trunkline.cancel(%s)", (job_id,)))
    _wait_for_lock(flow)
    ender.connection.commit()
    thread.join()
    canceller.commit()
    assert flow.jobs(started.workflow_id) == {"a": "completed", "b": "cancelled", "c": "cancelled"}
    assert flow.state(started.workflow_id) == "cancelled"


def test_a_claimed_job_that_a_cancel_misses_is_asked_to_stop_by_the_duty(flow: Flow) -> None:
    started = flow.start([job("a"), job("b", "a")])
    claimer = _Ender(flow)
    claimed = claimer.calls.claim("w", 10)
    assert flow.cancel(started.workflow_id) == "requested"
    claimer.connection.commit()
    assert flow.jobs(started.workflow_id) == {"a": "running", "b": "cancelled"}
    flow.advance()
    [verdict] = flow.worker.batch("heartbeat", "w", claimed.attempts)
    assert verdict.verdict == "cancel"


def test_two_starts_with_one_key_make_one_workflow(flow: Flow) -> None:
    graph = Jsonb({"name": "w", "steps": [job("a")], "idempotency_key": "k"})
    one, two = (flow.database.connect("trunkline_producer") for _ in range(2))
    one.autocommit = two.autocommit = False
    answers: list[Any] = []

    def start(connection: psycopg.Connection[Any]) -> None:
        answers.append(
            connection.execute("select * from trunkline.start_workflow(%s)", (graph,)).fetchone()
        )

    start(one)
    thread = _apart(lambda: start(two))
    _wait_for_lock(flow)
    one.commit()
    thread.join()
    two.commit()
    assert [answer[1] for answer in answers] == [True, False]
    assert answers[0][0] == answers[1][0]


def test_a_child_workflow_stops_when_its_parent_has_ended(flow: Flow) -> None:
    parent = flow.producer.enqueue("work").job_id
    children = {"name": "children", "kind": "batch", "steps": [job("a", delay="1 hour")]}
    child = workflows.start_children(flow.admin.connection, parent, children)
    flow.advance()
    assert flow.state(child) == "queued"
    flow.producer.change("cancel", parent)
    flow.advance()
    found = flow.workflow(child)
    assert (found.state, found.reason) == ("cancelled", "parent ended")
