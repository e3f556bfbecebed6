"""Recorded steps, waits, events and once results go with their job."""

from __future__ import annotations

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Attempt
from tests.support.internals import rows
from tests.workflows.flow import Flow, job

_STEPS = ("recorded_steps", "job_waits", "sent_events", "once_steps")


def leave_steps(flow: Flow, attempt: Attempt) -> None:
    """Let an attempt record a step and a once result, wait for an event and receive another."""
    flow.worker.connection.execute(
        "select trunkline.record_steps('w', array[%s]::uuid[], array[%s], '{1}', '{ocr}', '{#1}',"
        " '{0}', array[%s::jsonb])",
        (attempt.job, attempt.number, Jsonb("secret")),
    )
    flow.worker.connection.execute(
        "select trunkline.begin_wait('w', %s, %s, 2, 'event', 'approved', '#1')",
        (attempt.job, attempt.number),
    )
    flow.worker.connection.execute(
        "select trunkline.begin_once('w', %s, %s, 3, 'base')", (attempt.job, attempt.number)
    )
    flow.worker.connection.execute(
        "select trunkline.record_once('w', %s, %s, 'base', '\"secret\"')",
        (attempt.job, attempt.number),
    )
    flow.producer.connection.execute(
        "select trunkline.send_event('other', '\"secret\"', p_job => %s)", (attempt.job,)
    )


def left(flow: Flow) -> dict[str, int]:
    return {name: rows.count(flow.admin.connection, name) for name in _STEPS}


def dead_with_steps(flow: Flow) -> UUID:
    """Leave a dead letter with steps, and the steps of another job."""
    wanted = flow.producer.enqueue("work").job_id
    [attempt] = flow.claim().attempts
    leave_steps(flow, attempt)
    flow.fail(attempt)
    flow.producer.enqueue("work")
    [kept] = flow.claim().attempts
    leave_steps(flow, kept)
    assert left(flow) == dict.fromkeys(_STEPS, 2)
    found: UUID = wanted
    return found


def test_ta_13_steps_and_events_go_with_a_deleted_workflow(flow: Flow) -> None:
    """TA-13: nothing that a handler recorded or received outlives the deletion."""
    started = flow.start([job("a"), job("b"), job("c", "b")])
    taken = flow.take()
    for attempt in taken.values():
        leave_steps(flow, attempt)
    flow.complete(taken["a"])
    flow.fail(taken["b"])
    assert left(flow)["recorded_steps"] == 2
    flow.operator.value("select trunkline.delete_workflow(%s)", started.workflow_id)
    assert left(flow) == dict.fromkeys(_STEPS, 0)


@pytest.mark.parametrize(
    "call", ["discard(%s)", "discard_jobs(jsonb_build_object('job_ids', array[%s]))"]
)
def test_steps_and_events_go_with_a_discarded_job(flow: Flow, call: str) -> None:
    dead = dead_with_steps(flow)
    flow.operator.value(f"select trunkline.{call}", str(dead))
    assert left(flow) == dict.fromkeys(_STEPS, 1)


def test_steps_and_events_go_with_a_dead_letter_that_is_swept(flow: Flow) -> None:
    flow.operator.connection.execute(
        "select trunkline.set_setting('finished_retention', '90 days')"
    )
    flow.operator.connection.execute("select trunkline.set_setting('lease', '90 days')")
    dead = dead_with_steps(flow)
    flow.operator.change("acknowledge", dead)
    flow.database.move_time("31 days")
    flow.worker.value("select trunkline.maintain_partitions()")
    assert left(flow) == dict.fromkeys(_STEPS, 1)
