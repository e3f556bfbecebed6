"""What a hostile worker or producer cannot do, each with the rights that the product grants."""

from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import AI, TYPES, Clinic
from tests.support.calls import Calls

STALE = "CP015"
DENIED = psycopg.errors.InsufficientPrivilege
LOG = (
    "select clinical.log_audit_event('mine', 'r1', 'INSERT', p_patient_id => %s, p_job_id => %s,"
    " p_attempt => %s, p_worker => %s)"
)


def refused(code: str) -> Any:
    return pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == code)


@pytest.fixture
def job(clinic: Clinic) -> UUID:
    """A job that runs on worker w1, with a file."""
    return clinic.start(AI)


@pytest.mark.parametrize(
    "query",
    [
        "select * from clinical.job_queue",
        "select * from clinical.shell_files",
        "select * from clinical.clinical_records",
        "select * from clinical.audit_log",
        "select * from clinical.audit_of_jobs",
        "select * from clinical.imported_jobs",
        "select * from clinical.legacy_job_queue",
        "select * from clinical.legacy_shell_files",
        "select * from clinical.user_profiles",
        "select * from clinical.error_details(%(job)s, now() - interval '1 day')",
        "select * from clinical.require_claim(%(job)s, 1, 'w1')",
        "select * from clinical.running_attempt(%(job)s, 'w1', 1)",
        "select clinical.write_audit('job_queue', 'x', 'INSERT')",
        "select clinical.end_stage(%(job)s)",
        "select clinical.file_of(%(job)s)",
        "select clinical.stage_payload('{}', %(job)s, 'ai_queue_pass2')",
        "select clinical.start_pipeline(%(job)s, 'fast_queue_ocr', '{}', '{}')",
        "select clinical.settle_tokens(%(job)s, 1, '{}')",
        "select clinical.set_file_state(%(job)s, %(job)s, null)",
        "select clinical.make_job('ai_queue_pass1', 'x', '{}')",
        "insert into clinical.clinical_records (job_id, stage) values (%(job)s, 's')",
        "update clinical.clinical_records set body = '{}'",
        "delete from clinical.clinical_records",
        "update clinical.job_types set is_active = false",
        "delete from clinical.job_types",
    ],
)
def test_a_worker_reads_and_writes_nothing_past_its_attempts(
    clinic: Clinic, job: UUID, query: str
) -> None:
    """CP-72, CP-75: no table, view or helper shows a worker a job that it did not claim."""
    with pytest.raises(DENIED, match="permission denied"):
        clinic.worker.connection.execute(query.encode(), {"job": job})


def test_a_worker_sees_a_payload_only_by_its_claim(clinic: Clinic) -> None:
    """CP-27: no function returns the payload of a job by its id."""
    names = clinic.rows(
        "select p.proname from pg_proc as p where p.pronamespace = 'clinical'::regnamespace"
        " and has_function_privilege('trunkline_worker', p.oid, 'execute')"
    )
    assert {row.proname for row in names} == {
        *("claim_next_job_v3", "update_job_heartbeat", "reschedule_job", "complete_job"),
        *("fail_job", "finish_stage", "stage_file", "stage_records", "write_record"),
        *("acquire_api_capacity", "release_api_capacity", "log_audit_event"),
        *("keep_audit", "note_stopped_files", "configured", "client_health"),
        *("has_profile_access", "user_id", "as_uuid", "is_service_role"),
    }


@pytest.mark.parametrize("wrong", ["job", "attempt", "no attempt", "worker", "ended", "lost"])
def test_a_worker_reads_and_writes_for_its_own_attempt_alone(
    clinic: Clinic, job: UUID, wrong: str
) -> None:
    """CP-72: a random job, another attempt, another worker's, and one that is over."""
    clinic.write(job, {"a": 1})
    fence: list[Any] = [job, 1, "w1"]
    match wrong:
        case "job":
            fence[0] = uuid4()
        case "attempt":
            fence[1] = 2
        case "no attempt":
            fence[1] = None
        case "worker":
            fence[2] = "w2"
        case "ended":
            assert clinic.complete(job)
        case "lost":
            clinic.pass_time("301 seconds")
            clinic.rows("select * from trunkline.reclaim()")
            clinic.pass_time("1 hour")
            assert clinic.claim("w1").attempt == 2
    before = clinic.rows("select count(*) from clinical.audit_entries", calls=owner(clinic))
    with refused(STALE):
        clinic.worker.value("select clinical.write_record(%s, %s, %s, 'k', '{}')", *fence)
    for read in ("stage_file", "stage_records"):
        with refused(STALE):
            clinic.worker.value(f"select clinical.{read}(%s, %s, %s)", *fence)
    with refused(STALE):
        clinic.worker.value(LOG, clinic.patient, *fence)
    with refused(STALE):
        clinic.worker.value("select clinical.finish_stage(%s, %s, %s)", *fence)
    assert clinic.rows("select count(*) from clinical.audit_entries", calls=owner(clinic)) == before
    assert [r.body for r in clinic.rows("select body from clinical.clinical_records")] == [{"a": 1}]


def owner(clinic: Clinic) -> Calls:
    return Calls(clinic.database.connect("trunkline_owner"))


def test_a_worker_reads_what_it_has_claimed(clinic: Clinic, job: UUID) -> None:
    """CP-09: the file of its job, and what earlier stages found in it."""
    clinic.write(job, {"a": 1}, kind="facts")
    (file,) = clinic.rows(
        "select * from clinical.stage_file(%s, 1, 'w1')", job, calls=clinic.worker
    )
    assert (file.mime_type, file.size_bytes) == ("image/png", 123)
    assert file.storage_path.startswith(f"{clinic.patient}/")
    (record,) = clinic.rows(
        "select * from clinical.stage_records(%s, 1, 'w1')", job, calls=clinic.worker
    )
    assert (record.stage, record.record_kind, record.body) == (AI, "facts", {"a": 1})
    plain = clinic.start(worker="w2")
    none = clinic.rows("select * from clinical.stage_file(%s, 1, 'w2')", plain, calls=clinic.worker)
    assert none == []
    with refused("CP007"):
        clinic.write(plain, {}, worker="w2")


@pytest.mark.parametrize(
    "forged",
    [
        {"p_origin": "user"},
        {"p_patient_id": "other"},
        {"p_table_name": "job_queue"},
        {"p_table_name": "shell_files"},
        {"p_table_name": "clinical_records"},
        {"p_table_name": "client_event"},
        {"p_table_name": "system_configuration"},
    ],
)
def test_a_worker_forges_no_audit_event(clinic: Clinic, job: UUID, forged: dict[str, Any]) -> None:
    """CP-72, CP-103: not as a user, not for another patient, not about what it did not change."""
    if "p_patient_id" in forged:
        forged = {"p_patient_id": clinic.admit()}
    named: dict[str, Any] = {"p_table_name": "mine", "p_record_id": "r1", "p_action": "INSERT"}
    named |= {"p_patient_id": clinic.patient, "p_job_id": job, "p_attempt": 1, "p_worker": "w1"}
    call = "select clinical.log_audit_event({})"
    query = call.format(", ".join(f"{name} => %({name})s" for name in named | forged))
    with refused("CP019"):
        clinic.worker.connection.execute(query.encode(), named | forged)
    query = call.format(", ".join(f"{name} => %({name})s" for name in named))
    clinic.worker.connection.execute(query.encode(), named)
    (event,) = clinic.audit("r1", "mine")  # type: ignore[arg-type]
    assert (event.origin, event.actor, event.patient_id, event.job_id) == (
        *("system", "trunkline_worker"),
        *(clinic.patient, job),
    )


def test_a_result_moves_no_other_patients_file(clinic: Clinic) -> None:
    """CP-97, CP-106: the next stage is about the same file, whatever a worker returns."""
    other = clinic.admit()
    foreign = clinic.upload(other)
    clinic.producer.value("select clinical.cancel_job(%s)", foreign.job_id)
    mine = clinic.upload()
    claimed = clinic.claim()
    assert claimed.job_id == mine.job_id
    result = {"next_payload": {"shell_file_id": str(foreign.file_id), "note": "x"}}
    assert clinic.complete(mine.job_id, result=result)
    claimed = clinic.claim()
    row = clinic.row(claimed.job_id)
    assert (row.job_type, row.patient_id) == (TYPES[1], clinic.patient)
    assert claimed.job_payload == row.job_payload
    assert (row.job_payload["note"], row.job_payload["shell_file_id"]) == ("x", str(mine.file_id))
    look = "select storage_path from clinical.stage_file(%s, 1, 'w1')"
    assert clinic.worker.value(look, row.id).startswith(f"{clinic.patient}/")
    # The rest of the pipeline ends the file of the first patient alone.
    for _ in TYPES[1:6]:
        assert clinic.complete(claimed.job_id, result=result)
        claimed = clinic.claim()
    ended = clinic.rows("select id from clinical.shell_files where completed_at is not null")
    assert [file.id for file in ended] == [mine.file_id]


@pytest.mark.parametrize("end", ["completed", "dead"])
def test_a_forged_job_moves_no_other_patients_file(clinic: Clinic, end: str) -> None:
    """CP-97: a producer can write any payload and tag past the profile; its tenant decides."""
    other = clinic.admit()
    foreign = clinic.upload(other)
    clinic.producer.value("select clinical.cancel_job(%s)", foreign.job_id)
    forged = clinic.producer.value(
        "select job_id from trunkline.enqueue('ai_queue_pass3', %s, p_tenant => %s, p_tags => %s,"
        """ p_cost => '{"tokens": 1}')""",
        Jsonb({"shell_file_id": str(foreign.file_id)}),
        str(clinic.patient),
        [f"workflow:{foreign.file_id}"],
    )
    assert clinic.claim().job_id == forged
    look = "select * from clinical.stage_file(%s, 1, 'w1')"
    assert clinic.rows(look, forged, calls=clinic.worker) == []
    with refused("CP007"):
        clinic.write(forged, {"a": 1})
    if end == "completed":
        assert clinic.complete(forged)
    else:
        assert clinic.fail(forged, retryable=False)
        assert clinic.worker.value("select clinical.note_stopped_files()") == 0
    (file,) = clinic.rows("select * from clinical.shell_files where id = %s", foreign.file_id)
    assert (file.completed_at, file.processing_error) == (None, None)


@pytest.mark.parametrize(
    "change",
    [
        "delete from clinical.job_types where job_type = '{}'",
        "delete from clinical.job_types",
        "update clinical.job_types set job_type = 'gone' where job_type = '{}'",
        "truncate clinical.job_types cascade",
    ],
)
@pytest.mark.parametrize("kind", [TYPES[0], "report_generation"])
@pytest.mark.parametrize("role", ["trunkline_operator", "trunkline_owner"])
def test_a_job_type_is_never_deleted(clinic: Clinic, change: str, kind: str, role: str) -> None:
    """CP-11, CP-97: its jobs and their audit would be hidden, and uploads would break."""
    job = clinic.enqueue(kind)
    connection = clinic.database.connect(role)
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate in {"CP020", "42501"}) as error:
        connection.execute(change.format(kind).encode())
    assert error.value.sqlstate == "CP020" or "truncate" in change
    assert clinic.row(job).job_type == kind
    assert [e.kind for e in clinic.audit(job)] == ["enqueued"]
    assert clinic.upload().job_id


def test_a_type_that_is_not_wanted_is_deactivated(clinic: Clinic) -> None:
    """CP-11, CP-19: nothing new is enqueued; what is there goes on and stays visible."""
    job = clinic.enqueue("report_generation")
    off = "update clinical.job_types set is_active = %s where job_type = %s"
    clinic.operator.connection.execute(off, (False, "report_generation"))
    with refused("CP021"):
        clinic.enqueue("report_generation")
    assert clinic.claim().job_id == job
    assert clinic.complete(job)
    assert [e.kind for e in clinic.audit(job)] == ["enqueued", "claimed", "completed"]
    assert clinic.row(job).status == "completed"
    clinic.operator.connection.execute(off, (True, "report_generation"))
    again = clinic.enqueue("report_generation")
    assert clinic.row(again).status == "pending"


def test_a_stage_that_is_not_active_is_passed_over(clinic: Clinic) -> None:
    """CP-106: the pipeline goes on with the next one."""
    clinic.operator.connection.execute(
        "update clinical.job_types set is_active = false where job_type = 'ai_queue_pass2'"
    )
    clinic.upload()
    done = []
    while (claimed := clinic.claim()) is not None:
        assert clinic.complete(claimed.job_id)
        done.append(claimed.job_type)
    assert done == [kind for kind in TYPES[:6] if kind != "ai_queue_pass2"]


@pytest.mark.parametrize(
    "change",
    [
        *(f"is_active = false where job_type = '{kind}'" for kind in TYPES[:4]),
        "is_active = false where job_type = 'audit_cleanup'",
        "is_active = false where job_type = 'system_maintenance'",
        "is_active = false",
        "is_first_stage = false",
    ],
)
def test_what_uploads_and_the_audit_need_cannot_go(clinic: Clinic, change: str) -> None:
    """CP-08, CP-72."""
    with refused("CP020"):
        clinic.operator.connection.execute(f"update clinical.job_types set {change}".encode())
    assert clinic.upload().job_id


@pytest.mark.parametrize("role", ["trunkline_worker", "trunkline_producer", "trunkline_operator"])
@pytest.mark.parametrize("change", ["p_audit => false", "p_profile => 'other'"])
def test_a_registration_does_not_hide_the_audit(clinic: Clinic, role: str, change: str) -> None:
    """CP-26, CP-97: who registers tasks cannot switch off their audit, operators included."""
    connection = clinic.database.connect(role)
    with refused("TL022"):
        connection.execute(f"select trunkline.register_task('{AI}', {change})".encode())
    field, value = change.removeprefix("p_").split(" => ")
    policy = {"task": AI, field: False if value == "false" else "other"}
    with refused("TL022"):
        connection.execute("select trunkline.register_tasks(%s)", (Jsonb([policy]),))
    assert [e.kind for e in clinic.audit(clinic.enqueue(AI))] == ["enqueued"]


@pytest.mark.parametrize("limit", [0, -1, 10_001, None])
def test_maintenance_is_bounded(clinic: Clinic, limit: int | None) -> None:
    """A payload names the limit, so it may be anything."""
    with refused("CP022"):
        clinic.worker.value("select clinical.note_stopped_files(%s::int)", limit)


def test_readers_of_the_older_system_are_producers(clinic: Clinic) -> None:
    """CP-89: the views in the old form show every payload, so workers do not read them."""
    clinic.upload()
    clinic.operator.value("select (clinical.run_step('rollback', 'legacy_views', false)).outcome")
    assert len(clinic.rows("select * from clinical.legacy_job_queue", calls=clinic.producer)) == 1
    with pytest.raises(DENIED):
        clinic.worker.connection.execute("select * from clinical.legacy_job_queue")
