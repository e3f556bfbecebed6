"""Heartbeat, reschedule, complete, fail, cancel: every call is fenced by worker and lease."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import AI, PLAIN, Clinic


def passed_on(clinic: Clinic) -> UUID:
    """A job that w1 lost and w2 runs now, at its second attempt."""
    job = clinic.start()
    clinic.pass_time("301 seconds")
    clinic.rows("select * from trunkline.reclaim()")
    clinic.pass_time("61 seconds")
    assert clinic.claim("w2").attempt == 2
    return job


def test_cp_39_a_heartbeat_of_the_holder(clinic: Clinic) -> None:
    """CP-39: true, at the time it happened, and the lease goes on from there."""
    job = clinic.start()
    clinic.pass_time("200 seconds")
    assert clinic.beat(job)
    assert clinic.beat(job, attempt=1)
    row = clinic.row(job)
    assert row.heartbeat_at == row.updated_at <= clinic.operator.clock()
    clinic.pass_time("200 seconds")
    assert clinic.rows("select * from trunkline.reclaim()") == []


def test_cp_39_a_heartbeat_of_anybody_else(clinic: Clinic, nobody: UUID) -> None:
    """CP-39, CP-40: another worker, an older lease, an unknown or ended job: false."""
    job = passed_on(clinic)
    before = clinic.row(job)
    assert not clinic.beat(job, "w1")
    assert not clinic.beat(job, "w2", attempt=1)
    assert not clinic.beat(nobody, "w2")
    assert clinic.row(job) == before
    assert clinic.complete(job, "w2")
    assert not clinic.beat(job, "w2")


@pytest.mark.parametrize(("delay", "most"), [(30, 45), (100, 130), (0, 0)])
def test_cp_41_a_delay_and_its_jitter(clinic: Clinic, delay: int, most: int) -> None:
    """CP-41, CP-42: up to half the delay and at most 30 seconds more, all of it on record."""
    found = set()
    for _ in range(12):
        job = clinic.start()
        assert clinic.reschedule(job, delay)
        details = clinic.row(job).error_details
        assert details["reschedule_delay_seconds"] == delay
        assert details["total_delay_seconds"] == delay + details["jitter_seconds"]
        assert details["reschedule_reason"] == "api_rate_limit_backpressure"
        assert details["jitter_seconds"] == int(details["jitter_seconds"])
        found.add(details["total_delay_seconds"])
        clinic.producer.value("select clinical.cancel_job(%s)", job)
    assert delay <= min(found) <= max(found) <= most
    assert len(found) > 1 or delay == 0


def test_cp_41_without_jitter_exactly_the_delay(clinic: Clinic) -> None:
    """CP-41: to the moment it was asked for."""
    job = clinic.start()
    assert clinic.reschedule(job, 100, jitter=False)
    row = clinic.row(job)
    assert row.error_details["total_delay_seconds"] == 100
    assert row.scheduled_at - row.updated_at == timedelta(seconds=100)


def test_cp_42_a_reschedule_is_no_retry(clinic: Clinic) -> None:
    """CP-42, CP-96: pending again, the lease cleared, the retries as they were."""
    job = clinic.start()
    assert clinic.reschedule(job, 30)
    row = clinic.row(job)
    assert (row.status, row.retry_count, row.deferrals) == ("pending", 0, 1)
    assert (row.worker_id, row.started_at, row.heartbeat_at) == (None, None, None)
    assert row.error_details["rescheduled_at"]
    assert clinic.claim() is None
    clinic.pass_time("46 seconds")
    assert clinic.claim().retry_count == 0


def test_cp_43_only_the_holder_reschedules(clinic: Clinic) -> None:
    """CP-43: not another worker, not an old lease, not without a word who asks."""
    job = passed_on(clinic)
    before = clinic.row(job)
    assert not clinic.reschedule(job, 5, "w1")
    assert not clinic.reschedule(job, 5, "w2", attempt=1)
    assert not clinic.reschedule(job, 5, None)
    assert clinic.row(job) == before
    assert clinic.reschedule(job, 5, "w2", attempt=2)


@pytest.mark.parametrize("end", ["complete", "cancel", "fail", "wait"])
def test_cp_43_an_ended_job_stays_ended(clinic: Clinic, end: str) -> None:
    """CP-43: completed, cancelled, failed or waiting: false, and nothing changes."""
    job = clinic.start()
    ends: dict[str, Callable[[], object]] = {
        "complete": lambda: clinic.complete(job),
        "cancel": lambda: (
            clinic.producer.value("select clinical.cancel_job(%s)", job),
            clinic.beat(job),
        ),
        "fail": lambda: clinic.fail(job, retryable=False),
        "wait": lambda: clinic.reschedule(job, 30),
    }
    ends[end]()
    before = clinic.row(job)
    assert before.status != "processing"
    assert not clinic.reschedule(job, 5)
    assert not clinic.complete(job)
    assert not clinic.fail(job)
    assert clinic.row(job) == before


def test_cp_43_a_negative_delay_is_an_error(clinic: Clinic) -> None:
    """CP-43: also from somebody who does not hold the job."""
    job = clinic.start()
    for worker in ("w1", None):
        with pytest.raises(psycopg.Error, match="delay is negative"):
            clinic.reschedule(job, -1, worker)
    assert clinic.row(job).status == "processing"


@pytest.mark.parametrize(("key", "value"), [("queue.max_deferrals", "2"), (None, None)])
def test_cp_44_a_job_that_is_only_deferred_is_an_alert(
    clinic: Clinic, key: str | None, value: str | None
) -> None:
    """CP-44: after so many deferrals, or after a day of them."""
    if key and value:
        clinic.configure(key, value)
    job = clinic.enqueue()
    for _ in range(3):
        assert clinic.claim().job_id == job
        assert not clinic.metric("deferred_without_progress").alert
        assert clinic.reschedule(job, 0)
    if key is None:
        clinic.pass_time("25 hours")
    assert clinic.metric("deferred_without_progress") == (1, True)


def test_cp_44_a_hundred_deferrals_are_no_alert_yet(clinic: Clinic) -> None:
    """CP-44: without a row of configuration it is one more than a hundred."""
    job = clinic.enqueue()
    for turn in range(101):
        assert clinic.claim().job_id == job
        assert clinic.reschedule(job, 0)
        if turn == 99:
            assert clinic.row(job).deferrals == 100
            assert not clinic.metric("deferred_without_progress").alert
    assert clinic.metric("deferred_without_progress") == (1, True)


def test_cp_45_complete_is_true_once(clinic: Clinic, nobody: UUID) -> None:
    """CP-45, CP-47, CP-101: the call that changed it; lease fields cleared, the result kept."""
    job = clinic.start()
    assert clinic.complete(job, result={"tokens_used": 0, "text": "x"})
    assert not clinic.complete(job, result={"other": 1})
    assert not clinic.complete(nobody)
    row = clinic.row(job)
    assert (row.status, row.job_result) == ("completed", {"tokens_used": 0, "text": "x"})
    assert row.completed_at == row.updated_at
    assert (row.worker_id, row.heartbeat_at, row.attempt) == (None, None, None)


def test_cp_46_the_audit_of_a_completion(clinic: Clinic) -> None:
    """CP-46, CP-98, CP-97: only when it happened, with the patient."""
    job = clinic.start(AI)
    assert not clinic.complete(job, "somebody else")
    assert [e.kind for e in clinic.audit(job)] == ["enqueued", "claimed"]
    assert clinic.complete(job)
    assert not clinic.complete(job)
    event = clinic.audit(job)[-1]
    assert [e.kind for e in clinic.audit(job)].count("completed") == 1
    assert (event.action, event.origin, event.old_values) == ("UPDATE", "system", None)
    expected = {"status": "completed", "job_id": str(job), "worker_id": "w1"}
    assert (event.new_values, event.patient_id) == (expected, clinic.patient)
    assert event.reason


def test_cp_98_the_event_of_a_completion(clinic: Clinic) -> None:
    """CP-98: which table, record, action and origin; no old values, a reason, the new ones."""
    job = clinic.start()
    assert clinic.complete(job, result={"kept": "elsewhere"})
    event = clinic.audit(job)[-1]
    assert (event.table_name, event.record_id, event.action) == ("job_queue", str(job), "UPDATE")
    assert (event.origin, event.old_values, event.job_id) == ("system", None, job)
    assert event.reason
    assert event.new_values == {"status": "completed", "job_id": str(job), "worker_id": "w1"}


def test_cp_69_a_retry_waits_for_its_limit(clinic: Clinic) -> None:
    """CP-69: due after its back-off it is claimed when its endpoint takes calls, not before."""
    job = clinic.start(AI)
    assert clinic.fail(job)
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set concurrent_requests = 1"
    )
    permit = clinic.acquire()
    clinic.pass_time("2 minutes")
    assert clinic.claim() is None
    assert clinic.release(permit.permit_id, 10)
    assert clinic.claim().job_id == job
    assert clinic.row(job).retry_count == 1


def test_cp_47_the_losing_worker_changes_nothing(clinic: Clinic) -> None:
    """CP-47: its late completion and failure are told false."""
    job = passed_on(clinic)
    assert not clinic.complete(job, "w1", {"late": True})
    assert not clinic.complete(job, "w2", {"late": True}, attempt=1)
    assert not clinic.fail(job, "w1")
    assert clinic.row(job).worker_id == "w2"
    assert clinic.complete(job, "w2", attempt=2)


def test_cp_48_a_failure_is_tried_again(clinic: Clinic) -> None:
    """CP-48, CP-69, CP-14: back-off of 30 s that doubles, with jitter; shown as retrying."""
    job = clinic.enqueue()
    waits = []
    for number in range(3):
        assert clinic.claim().retry_count == number
        assert clinic.fail(job)
        row = clinic.row(job)
        assert (row.status, row.waiting_reason, row.retry_count) == (
            "retrying",
            "retry",
            number + 1,
        )
        waits.append((row.scheduled_at - row.updated_at).total_seconds())
        assert row.error_details["message"] == "it broke"
        assert row.error_details["error_type"] == "Boom"
        clinic.pass_time("10 minutes")
    assert 20 <= waits[0] <= 40
    assert waits[0] * 1.2 < waits[1] * 1.2 < waits[2] * 1.5
    assert 90 <= waits[2] <= 150


def test_cp_48_the_end_of_retries(clinic: Clinic) -> None:
    """CP-48, CP-97: out of retries, or not retryable: failed, dead letter, a structured error."""
    job = clinic.enqueue(AI)
    for _ in range(4):
        clinic.claim()
        assert clinic.fail(job)
        clinic.pass_time("30 minutes")
    row = clinic.row(job)
    assert (row.status, row.retry_count) == ("failed", 3)
    assert row.error_details["dead_letter_reason"] == "exceeded_max_retries"
    assert clinic.audit(job)[-1].patient_id == clinic.patient
    other = clinic.start()
    assert clinic.fail(other, error={"type": "BadScan", "message": "no page"}, retryable=False)
    row = clinic.row(other)
    assert (row.status, row.retry_count) == ("failed", 1)
    assert row.dead_letter_at is not None
    assert row.error_details["dead_letter_reason"] == "not_retryable"


def test_cp_49_dead_letters_are_listed_requeued_and_acknowledged(clinic: Clinic) -> None:
    """CP-49: newest first, by type and reason."""
    dead = []
    for kind in (PLAIN, "audit_cleanup", PLAIN):
        job = clinic.start(kind)
        assert clinic.fail(job, retryable=False)
        dead.append(job)
        clinic.pass_time("1 minute")
    found = clinic.rows("select * from clinical.list_dead_letters()")
    assert [row.job_id for row in found] == dead[::-1]
    by_type = clinic.rows("select job_id from clinical.list_dead_letters(%s)", PLAIN)
    assert [row.job_id for row in by_type] == [dead[2], dead[0]]
    assert len(clinic.rows("select * from clinical.list_dead_letters(null, 'not_retryable')")) == 3
    assert clinic.rows("select * from clinical.list_dead_letters(null, 'other')") == []
    clinic.operator.value("select clinical.acknowledge_dead_letter(%s)", dead[0])
    (seen,) = clinic.rows("select * from clinical.list_dead_letters() where job_id = %s", dead[0])
    assert seen.acknowledged_by == "trunkline_operator"
    clinic.operator.value("select clinical.requeue_dead_letter(%s)", dead[1])
    assert clinic.claim().job_id == dead[1]
    # A new budget: three more retries before it is dead again.
    for _ in range(3):
        assert clinic.fail(dead[1])
        clinic.pass_time("1 hour")
        assert clinic.claim().job_id == dead[1]
    with pytest.raises(psycopg.Error, match="no job"):
        clinic.operator.value("select clinical.requeue_dead_letter(gen_random_uuid())")


def test_cp_50_a_waiting_job_is_cancelled_at_once(clinic: Clinic) -> None:
    """CP-50, CP-97: and its audit event has the patient."""
    job = clinic.enqueue(AI)
    assert clinic.producer.value("select clinical.cancel_job(%s, 'withdrawn')", job) == "cancelled"
    assert clinic.row(job).status == "cancelled"
    event = clinic.audit(job)[-1]
    assert (event.patient_id, event.new_values["status"]) == (clinic.patient, "cancelled")
    assert "withdrawn" in event.reason
    assert clinic.claim() is None


def test_cp_50_a_running_job_is_cancelled_at_its_next_heartbeat(clinic: Clinic) -> None:
    """CP-50, CP-39: the heartbeat answers false and ends it; a result comes too late."""
    job = clinic.start()
    clinic.producer.value("select clinical.cancel_job(%s)", job)
    assert clinic.row(job).status == "processing"
    assert not clinic.beat(job)
    assert clinic.row(job).status == "cancelled"
    assert not clinic.complete(job)


@pytest.mark.parametrize(
    ("state", "reason", "shown"),
    [
        ("ready", None, "pending"),
        ("scheduled", "lease_expired", "pending"),
        ("scheduled", "api_rate_limit_backpressure", "pending"),
        ("scheduled", "retry", "retrying"),
        ("scheduled", "backpressure", "deferred"),
        ("retrying", None, "retrying"),
        ("deferred", None, "deferred"),
        ("blocked", None, "pending"),
        ("running", "retry", "processing"),
        ("processing", None, "processing"),
        ("completed", None, "completed"),
        ("dead", "attempts_exhausted", "failed"),
        ("cancelled", None, "cancelled"),
    ],
)
def test_cp_96_one_rule_for_statuses(
    clinic: Clinic, state: str, reason: str | None, shown: str
) -> None:
    """CP-13, CP-14, CP-96: state and reason decide; running is read and never shown."""
    assert clinic.operator.value("select clinical.job_status(%s, %s)", state, reason) == shown


def test_cp_13_running_is_not_written(clinic: Clinic) -> None:
    """CP-13: nothing writes to the view, and the old word is refused by name."""
    job = clinic.start()
    superuser = clinic.database.superuser()
    with pytest.raises(psycopg.Error, match="running is an old status"):
        superuser.execute("update clinical.job_queue set status = 'running' where id = %s", (job,))
    with pytest.raises(psycopg.Error, match="not written to"):
        superuser.execute("delete from clinical.job_queue where id = %s", (job,))
    assert clinic.row(job).status == "processing"


def test_cp_13_every_status_is_reached_by_a_function(clinic: Clinic) -> None:
    """CP-13, CP-14: pending, processing, completed, failed, cancelled and retrying; all claimable
    when due, or over."""
    retried = clinic.start("audit_cleanup")
    assert clinic.fail(retried)
    waiting = clinic.enqueue()
    shown = {clinic.row(waiting).status, clinic.row(retried).status}
    assert shown == {"pending", "retrying"}
    clinic.pass_time("1 minute")
    assert {clinic.claim().job_id, clinic.claim().job_id} == {waiting, retried}


def test_cp_40_the_interval_is_configuration(clinic: Clinic) -> None:
    """CP-40, CP-62: 30 seconds, which is what the engine's workers read at run time."""
    engine = "select value::interval from trunkline.settings where name = 'heartbeat_interval'"
    assert clinic.operator.value(engine) == timedelta(seconds=30)
    clinic.configure("worker.heartbeat_interval_seconds", "20")
    assert clinic.operator.value(engine) == timedelta(seconds=20)


def test_results_that_are_no_objects_are_kept(clinic: Clinic) -> None:
    """CP-45, CP-101: only an object can carry tokens_used; anything else is a result as well."""
    for result in ([1], "text", 5, {"tokens_used": "many"}, {"tokens_used": -1}):
        job = clinic.start(AI)
        assert clinic.worker.value("select clinical.complete_job(%s, 'w1', %s)", job, Jsonb(result))
        assert clinic.row(job).job_result == result
