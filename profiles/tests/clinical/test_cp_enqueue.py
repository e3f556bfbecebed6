"""The way in: types, payloads, estimates and what an enqueue leaves in the audit."""

import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import AI, PLAIN, TYPES, Clinic
from trunkline.errors import LimitQueueFull

WAITING = "select count(*) from clinical.job_queue"


def refused(code: str) -> Any:
    """The refusal with that SQLSTATE."""
    return pytest.raises(psycopg.Error, check=lambda error: error.sqlstate == code)


def put(clinic: Clinic, payload: Any, kind: str = PLAIN, **more: Any) -> UUID:
    found: UUID = clinic.producer.value(
        "select clinical.enqueue_job_v3(%s, 'test', %s)", kind, Jsonb(payload)
    )
    return found


def test_cp_10_there_are_twelve_types(clinic: Clinic) -> None:
    """CP-10, CP-18: no others, and each can be enqueued."""
    jobs = {clinic.enqueue(kind) for kind in TYPES}
    assert len(jobs) == 12
    known = clinic.rows("select job_type from clinical.job_types")
    assert {row.job_type for row in known} == set(TYPES)
    tasks = clinic.rows("select task, queue from trunkline.tasks where profile = 'clinical'")
    assert {(row.task, row.queue) for row in tasks} == {(kind, "clinical") for kind in TYPES}


def test_cp_11_a_new_type_is_one_row(clinic: Clinic) -> None:
    """CP-11: added in the registry alone, it is enqueued and claimed."""
    with refused("CP001"):
        clinic.enqueue("lab_import")
    clinic.operator.connection.execute(
        "insert into clinical.job_types (job_type) values ('lab_import')"
    )
    job = clinic.enqueue("lab_import")
    assert clinic.claim("w1", "lab_import").job_id == job


def test_cp_12_the_record_has_the_fields_of_the_source(clinic: Clinic) -> None:
    """CP-12: names, types and defaults."""
    job = clinic.enqueue()
    row = clinic.row(job)
    assert (row.id, row.job_type, row.job_name, row.job_category) == (
        job,
        PLAIN,
        "test",
        "standard",
    )
    assert (row.priority, row.status, row.retry_count, row.max_retries) == (5, "pending", 0, 3)
    assert row.job_payload == {"work": True, "estimated_tokens": 1000}
    assert row.scheduled_at == row.created_at == row.updated_at
    empty = ("worker_id", "started_at", "completed_at", "heartbeat_at", "dead_letter_at")
    assert [getattr(row, name) for name in (*empty, "error_details", "job_result")] == [None] * 7
    types = dict(
        clinic.rows(
            "select a.attname, format_type(a.atttypid, null) from pg_attribute as a"
            " where a.attrelid = 'clinical.job_queue'::regclass and a.attnum > 0"
        )
    )
    assert {types[n] for n in ("job_payload", "error_details", "job_result")} == {"jsonb"}
    assert {types[n] for n in ("priority", "retry_count", "max_retries")} == {"integer"}


def test_cp_19_an_unknown_type_is_refused_with_the_list(clinic: Clinic) -> None:
    """CP-19: the message names all that are allowed, and nothing is stored."""
    with refused("CP001") as caught:
        clinic.enqueue("fast_queue_xray")
    assert all(kind in str(caught.value) for kind in TYPES)
    assert clinic.operator.value(WAITING) == 0


@pytest.mark.parametrize(
    ("payload", "code", "text"),
    [
        (None, "CP002", "payload cannot be empty"),
        ({}, "CP002", "payload cannot be empty"),
        ([1], "CP003", "array"),
        ("text", "CP003", "string"),
        (7, "CP003", "number"),
    ],
)
def test_cp_20_a_payload_is_an_object(clinic: Clinic, payload: Any, code: str, text: str) -> None:
    """CP-20: null and {} are empty; an array, a text and a number are no objects."""
    with refused(code) as caught:
        put(clinic, payload)
    assert text in str(caught.value)
    with refused("CP002"):
        clinic.producer.value("select clinical.enqueue_job_v3(%s, 'x', null)", PLAIN)
    assert clinic.operator.value(WAITING) == 0


@pytest.mark.parametrize(
    ("given", "stored"),
    [({}, 1000), ({"estimated_tokens": None}, 1000), ({"estimated_tokens": 0}, 0)]
    + [({"estimated_tokens": value}, 250) for value in (250, "250", 250.0)],
)
def test_cp_21_an_estimate_is_always_stored(
    clinic: Clinic, given: dict[str, Any], stored: int
) -> None:
    """CP-21, CP-104, CP-S07: the caller's, also as digits; absent and null are 1000."""
    job = clinic.enqueue(AI, given)
    assert clinic.row(job).job_payload["estimated_tokens"] == stored
    assert isinstance(clinic.row(job).job_payload["estimated_tokens"], int)


@pytest.mark.parametrize("bad", [-1, -5, "abc", "-1", 1.5, True, [5], "", 250000, "200001"])
def test_cp_s07_a_bad_estimate_is_refused(clinic: Clinic, bad: Any) -> None:
    """CP-S07, CP-21: not whole, negative, or more than the endpoint gives in a minute."""
    with refused("CP004") as caught:
        clinic.enqueue(AI, {"estimated_tokens": bad})
    assert "estimated_tokens" in str(caught.value)
    assert clinic.operator.value(WAITING + " where status = 'pending'") == 0


def test_cp_21_an_estimate_is_measured_by_the_endpoint_of_its_type(clinic: Clinic) -> None:
    """CP-21, CP-24: without an endpoint, or without a limit of tokens, it may be large."""
    for kind in ("fast_queue_ocr", PLAIN):
        job = clinic.enqueue(kind, {"estimated_tokens": 250_000})
        assert clinic.row(job).job_payload["estimated_tokens"] == 250_000


def test_cp_22_null_is_the_default(clinic: Clinic) -> None:
    """CP-22: a null priority or time is never stored."""
    job = clinic.enqueue(priority=None, scheduled_at=None)
    row = clinic.row(job)
    assert (row.priority, row.scheduled_at) == (5, row.created_at)
    assert clinic.claim().job_id == job


def test_cp_18_a_time_and_a_priority_are_kept(clinic: Clinic) -> None:
    """CP-18: scheduled for later, in its category."""
    later = clinic.operator.clock() + timedelta(hours=1)
    job = clinic.enqueue(priority=9, scheduled_at=later, job_category="urgent")
    row = clinic.row(job)
    assert (row.priority, row.scheduled_at, row.job_category) == (9, later, "urgent")
    assert clinic.claim() is None
    clinic.pass_time("61 minutes")
    assert clinic.claim().job_id == job


def test_cp_24_endpoints_are_configuration(clinic: Clinic) -> None:
    """CP-24, CP-99: AI passes and OCR have one by default; a row changes it."""
    limits = dict(
        clinic.rows("select task, limits from trunkline.tasks where profile = 'clinical'")
    )
    assert {kind for kind, names in limits.items() if names} == {*TYPES[3:6], "fast_queue_ocr"}
    assert limits[AI] == ["openai/gpt-4o-mini"]
    assert limits["fast_queue_ocr"] == ["google/vision-api"]
    clinic.operator.connection.execute(
        "update clinical.job_types set provider_name = 'anthropic', api_endpoint = 'claude-3'"
        " where job_type = %s",
        (AI,),
    )
    clinic.start(AI)
    assert clinic.limit("anthropic/claude-3").active_requests == 1
    assert clinic.limit().active_requests == 0


def test_cp_24_an_endpoint_has_a_row(clinic: Clinic) -> None:
    """CP-24: a type cannot name an endpoint that has no limits."""
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        clinic.operator.connection.execute(
            "update clinical.job_types set provider_name = 'nobody', api_endpoint = 'x'"
        )


def test_cp_26_every_enqueue_is_one_audit_event(clinic: Clinic) -> None:
    """CP-26, CP-97: table, record, action, values, reason, origin and patient."""
    job = clinic.enqueue(AI)
    (event,) = clinic.audit(job)
    assert (event.table_name, event.action, event.origin) == ("job_queue", "INSERT", "system")
    assert event.new_values.keys() == {"job_type", "job_id", "scheduled_at"}
    assert (event.new_values["job_type"], event.new_values["job_id"]) == (AI, str(job))
    assert event.old_values is None
    assert event.reason
    assert event.patient_id == clinic.patient


def test_cp_26_a_rolled_back_enqueue_leaves_no_event(clinic: Clinic) -> None:
    """CP-26: the event is in the same transaction."""
    before = clinic.operator.value("select count(*) from clinical.audit_log")
    with clinic.producer.connection.transaction(force_rollback=True):
        clinic.producer.value("select clinical.enqueue_job_v3(%s, 'x', '{\"a\": 1}')", PLAIN)
    assert clinic.operator.value("select count(*) from clinical.audit_log") == before
    assert clinic.operator.value(WAITING) == 0


def test_cp_97_a_job_belongs_to_the_patient_of_its_file(clinic: Clinic, nobody: UUID) -> None:
    """CP-97: by the file its payload names; maintenance has none; an unknown file is refused."""
    assert clinic.row(clinic.enqueue("ai_queue_pass2")).patient_id == clinic.patient
    assert clinic.row(clinic.enqueue("system_maintenance")).patient_id is None
    named = clinic.enqueue("consent_verification", {"shell_file_id": str(clinic.file)})
    assert clinic.row(named).patient_id == clinic.patient
    for payload in ({"shell_file_id": str(nobody)}, {"shell_file_id": "x"}, {"other": 1}):
        with refused("CP007"):
            put(clinic, payload, AI)


def test_cp_102_the_switch_of_v3(clinic: Clinic) -> None:
    """CP-102: off is a refusal of its own, stores nothing, and what waits stays."""
    job = clinic.enqueue()
    clinic.configure("queue.v3_enqueue_enabled", "false")
    for call in (clinic.enqueue, clinic.upload):
        with refused("CP005") as caught:
            call()
        assert "enqueue disabled" in str(caught.value)
    assert clinic.operator.value(WAITING) == 1
    assert clinic.operator.value("select count(*) from clinical.shell_files") == 0
    assert clinic.claim().job_id == job
    clinic.configure("queue.v3_enqueue_enabled", "true")
    assert clinic.row(clinic.enqueue()).status == "pending"


def test_cp_25_a_full_queue_has_its_own_refusal(clinic: Clinic) -> None:
    """CP-25: at queue_depth_limit jobs that wait for an endpoint the next one is refused."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set queue_depth_limit = 3 where provider_name = 'openai'"
    )
    for _ in range(3):
        clinic.enqueue(AI)
    with pytest.raises(psycopg.Error) as caught:
        clinic.enqueue(AI)
    assert caught.value.sqlstate == LimitQueueFull.sqlstate == "TL034"
    assert json.loads(caught.value.diag.message_detail or "{}") == {
        "code": "limit_queue_full",
        "limit": "openai/gpt-4o-mini",
        "waiting": 3,
        "asked": 1,
        "depth_limit": 3,
    }
    # Next to them is the stage of the cancelled pipeline of the file.
    rows = clinic.rows("select status from clinical.job_queue where job_type = %s", AI)
    assert sorted(row.status for row in rows) == ["cancelled", *["pending"] * 3]
    assert clinic.row(clinic.enqueue("fast_queue_ocr")).status == "pending"


def test_cp_25_a_full_queue_may_defer_instead(clinic: Clinic) -> None:
    """CP-25: as configured; the job is accepted and due later."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set queue_depth_limit = 1, queue_depth_refuses = false"
    )
    first, second = clinic.row(clinic.enqueue(AI)), clinic.row(clinic.enqueue(AI))
    assert first.scheduled_at == first.created_at
    assert second.scheduled_at - second.created_at == timedelta(seconds=5)


@pytest.mark.parametrize(("used", "delay"), [(400, 0), (401, 5)])
def test_cp_s06_backpressure_above_the_threshold(clinic: Clinic, used: int, delay: int) -> None:
    """CP-S06, CP-23: 400 of 500 is not above 0.80; with 401 a job is due 5 seconds later."""
    for _ in range(used):
        clinic.release(clinic.acquire(0).permit_id, 0)
    assert clinic.limit().current_requests_minute == used
    row = clinic.row(clinic.enqueue(AI))
    assert row.scheduled_at - row.created_at == timedelta(seconds=delay)


def test_cp_s06_an_old_window_counts_nothing(clinic: Clinic) -> None:
    """CP-S06, CP-23: 490 calls of two minutes ago put nothing off."""
    for _ in range(490):
        clinic.release(clinic.acquire(0).permit_id, 0)
    limit = clinic.limit()
    assert (limit.current_requests_minute, limit.requests_per_minute) == (490, 500)
    late = clinic.row(clinic.enqueue(AI))
    assert late.scheduled_at - late.created_at == timedelta(seconds=5)
    clinic.pass_time("2 minutes")
    row = clinic.row(clinic.enqueue(AI))
    assert row.scheduled_at == row.created_at


@pytest.mark.parametrize(("used", "delay"), [(5, 0), (6, 7)])
def test_cp_23_the_threshold_and_the_delay_are_the_endpoints(
    clinic: Clinic, used: int, delay: int
) -> None:
    """CP-23: above the threshold later by the delay of its row; other types are not put off."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set requests_per_minute = 10,"
        " backpressure_threshold = 0.5, backpressure_delay_seconds = 7"
        " where provider_name = 'openai'"
    )
    for _ in range(used):
        clinic.acquire(0)

    def put_off(kind: str) -> timedelta:
        row = clinic.row(clinic.enqueue(kind))
        found: timedelta = row.scheduled_at - row.created_at
        return found

    assert put_off(AI) == timedelta(seconds=delay)
    assert {put_off(kind) for kind in (PLAIN, "fast_queue_ocr")} == {timedelta(0)}
    clinic.pass_time("62 seconds")
    assert put_off(AI) == timedelta(0)


def test_cp_99_the_endpoints_of_types(clinic: Clinic) -> None:
    """CP-99: three passes, and the OCR; all others call nobody."""
    rows = clinic.rows("select * from clinical.job_types")
    found = {row.job_type: (row.provider_name, row.api_endpoint) for row in rows}
    called = dict.fromkeys(TYPES[3:6], ("openai", "gpt-4o-mini"))
    called["fast_queue_ocr"] = ("google", "vision-api")
    assert found == dict.fromkeys(TYPES, (None, None)) | called


@pytest.mark.parametrize(("given", "kept"), [(None, 1000), ("500", 500), ("007", 7)])
def test_cp_104_an_estimate_as_null_or_as_digits(clinic: Clinic, given: Any, kept: int) -> None:
    """CP-104: null is absent, digits are the number; a worker's delay is 30 s where none is set."""
    row = clinic.row(clinic.enqueue(AI, {"estimated_tokens": given}))
    assert row.job_payload["estimated_tokens"] == kept
    key = "queue.backpressure_delay_seconds"
    clinic.operator.connection.execute(
        "delete from clinical.system_configuration where config_key = %s", (key,)
    )
    assert clinic.operator.value("select clinical.configured(%s)", key) == "30"


@pytest.mark.parametrize("status", ["maintenance", "disabled"])
def test_cp_100_no_backpressure_where_nothing_runs(clinic: Clinic, status: str) -> None:
    """CP-100: the job is accepted without delay, and waits at the claim."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set requests_per_minute = 10"
    )
    for _ in range(10):
        clinic.acquire(0)
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set status = %s where provider_name = 'openai'", (status,)
    )
    job = clinic.enqueue(AI)
    row = clinic.row(job)
    assert row.scheduled_at == row.created_at
    assert clinic.claim() is None
    clinic.operator.connection.execute("update clinical.api_rate_limits set status = 'active'")
    clinic.pass_time("2 minutes")
    assert clinic.claim().job_id == job
