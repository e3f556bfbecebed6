"""The audit: with the patient, in the transaction of the write, never skipped, never changed."""

from uuid import UUID

import psycopg
import pytest

from profiles.tests.clinical.conftest import AI, Clinic
from tests.support.internals.rows import clear

INSERT = (
    "insert into clinical.clinical_records"
    " (id, patient_id, shell_file_id, job_id, stage, record_kind, body)"
    " values (%s, %s, %s, %s, 's', 'k', '{}')"
)
EVENT = (
    "select clinical.write_audit('clinical_records', %s, 'INSERT', null, '{}', 'test',"
    " 'system', %s, %s)"
)


def test_cp_72_a_record_is_written_with_its_event(clinic: Clinic) -> None:
    """CP-72, CP-71: table, record, action, values, reason, origin, patient and job."""
    job = clinic.start(AI)
    record = clinic.write(job, {"a": 1})
    assert clinic.write(job, {"a": 2}) == record
    first, second = clinic.audit(record, "clinical_records")
    assert (first.action, first.old_values, first.new_values) == ("INSERT", None, {"a": 1})
    assert (second.action, second.old_values, second.new_values) == ("UPDATE", {"a": 1}, {"a": 2})
    assert {(e.patient_id, e.job_id, e.origin) for e in (first, second)} == {
        (clinic.patient, job, "system")
    }
    assert first.actor == "trunkline_worker"


def test_cp_72_a_write_without_an_event_is_impossible(clinic: Clinic, nobody: UUID) -> None:
    """CP-72: refused at the end of its transaction, for the owner as well."""
    file, job = clinic.file, clinic.enqueue(AI)
    owner = clinic.database.connect("trunkline_owner")
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP010"), owner.transaction():
        owner.execute(INSERT, (nobody, clinic.patient, file, job))
    assert clinic.rows("select * from clinical.clinical_records") == []


def test_cp_72_a_restored_event_with_the_same_transaction_number_does_not_do(
    clinic: Clinic, nobody: UUID
) -> None:
    """CP-72: a new server counts transactions from the start, so old events have future numbers."""
    file, job = clinic.file, clinic.enqueue(AI)
    owner = clinic.database.connect("trunkline_owner")
    # As a restore leaves them. Other databases of the server use up numbers, too.
    owner.execute(
        "insert into clinical.audit_entries"
        " (at, table_name, record_id, action, reason, origin, patient_id, actor, xid)"
        " select now(), 'clinical_records', %s, 'INSERT', 'test', 'system', %s, 'x',"
        " ((pg_current_xact_id()::text)::bigint + n)::text::xid8"
        " from generate_series(1, 20000) as n",
        (str(nobody), clinic.patient),
    )

    def write() -> None:
        with owner.transaction():
            owner.execute(INSERT, (nobody, clinic.patient, file, job))
            assert owner.execute(
                "select count(*) from clinical.audit_entries where xid = pg_current_xact_id()"
            ).fetchone() == (1,)

    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP010"):
        write()
    assert clinic.rows("select * from clinical.clinical_records") == []


@pytest.mark.parametrize("wrong", ["patient", "record", "earlier"])
def test_cp_72_an_event_about_something_else_does_not_do(
    clinic: Clinic, nobody: UUID, wrong: str
) -> None:
    """CP-72: another patient's, another record's, or one of an earlier transaction."""
    file, job, other = clinic.file, clinic.enqueue(AI), clinic.admit()
    record = str(clinic.patient) if wrong == "record" else str(nobody)
    event = (record, other if wrong == "patient" else clinic.patient, job)
    owner = clinic.database.connect("trunkline_owner")
    if wrong == "earlier":
        owner.execute(EVENT, event)

    def write() -> None:
        with owner.transaction():
            owner.execute(INSERT, (nobody, clinic.patient, file, job))
            if wrong != "earlier":
                owner.execute(EVENT, event)

    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP010"):
        write()
    with owner.transaction():
        owner.execute(INSERT, (nobody, clinic.patient, file, job))
        owner.execute(EVENT, (str(nobody), clinic.patient, job))
    assert len(clinic.rows("select * from clinical.clinical_records")) == 1


def test_cp_72_an_event_names_its_patient(clinic: Clinic) -> None:
    """CP-72, CP-94: an event about clinical data without one is refused; there are none."""
    job = clinic.start(AI)
    for calls, fence in ((clinic.worker, (job, 1, "w1")), (clinic.operator, (None, None, None))):
        with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP014"):
            calls.value(
                "select clinical.log_audit_event('mine', 'x', 'INSERT', p_job_id => %s,"
                " p_attempt => %s, p_worker => %s)",
                *fence,
            )
    assert clinic.metric("audit_without_patient") == (0, False)


@pytest.mark.parametrize("change", ["update", "delete", "truncate"])
def test_the_audit_only_grows(clinic: Clinic, change: str) -> None:
    """CP-72: nobody changes or removes an event, not even the owner."""
    clinic.upload()
    statement = {
        "update": "update clinical.audit_entries set reason = 'x'",
        "delete": "delete from clinical.audit_entries",
        "truncate": "truncate clinical.audit_entries",
    }[change]
    owner = clinic.database.connect("trunkline_owner")
    with pytest.raises(psycopg.Error, match="neither changed nor removed"):
        owner.execute(statement.encode())
    assert (
        len(clinic.rows("select * from clinical.audit_log where table_name = 'shell_files'")) == 1
    )


def test_cp_97_every_event_of_a_job_has_the_patient(clinic: Clinic) -> None:
    """CP-97: enqueue, claim, fail, reclaim, dead letter, requeue, complete and cancel."""
    job = clinic.start(AI)
    assert clinic.fail(job)
    for _ in range(3):
        clinic.pass_time("1 hour")
        assert clinic.claim().job_id == job
        clinic.pass_time("301 seconds")
        clinic.rows("select * from trunkline.reclaim()")
    assert clinic.row(job).status == "failed"
    clinic.operator.value("select clinical.acknowledge_dead_letter(%s)", job)
    clinic.operator.value("select clinical.requeue_dead_letter(%s)", job)
    clinic.claim()
    assert clinic.complete(job)
    other = clinic.enqueue(AI)
    clinic.producer.value("select clinical.cancel_job(%s)", other)
    events = clinic.audit(job) + clinic.audit(other)
    kinds = {e.kind for e in events}
    assert kinds >= {"enqueued", "claimed", "failed", "lost", "replayed", "completed", "cancelled"}
    assert {e.patient_id for e in events} == {clinic.patient}
    assert {e.job_id for e in events} == {job, other}


def test_the_audit_is_kept_beyond_the_engines_retention(clinic: Clinic) -> None:
    """CP-72, CP-97: events about jobs are taken over for good, once each, also late ones."""
    job = clinic.start(AI)
    clinic.complete(job)
    before = clinic.audit(job)
    clinic.pass_time("2 hours")
    assert clinic.worker.value("select clinical.keep_audit()") >= 3
    assert clinic.worker.value("select clinical.keep_audit()") == 0
    assert clinic.audit(job) == before
    clear(clinic.database.superuser(), "events")
    assert clinic.audit(job) == before
    late = clinic.enqueue(AI)
    assert [e.kind for e in clinic.audit(late)] == ["enqueued"]


@pytest.mark.parametrize("older", ["-100 years", "-1 second", "100 years", "25 hours", None])
@pytest.mark.parametrize("role", ["worker", "operator"])
def test_no_argument_hides_the_audit(clinic: Clinic, older: str | None, role: str) -> None:
    """CP-72, CP-97: whatever keep_audit is asked for, events of later jobs are shown."""
    before = clinic.start(AI)
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP022"):
        getattr(clinic, role).value("select clinical.keep_audit(%s)", older)
    assert getattr(clinic, role).value("select clinical.keep_audit('0')") >= 2
    clinic.complete(before)
    after = clinic.enqueue(AI)
    assert {e.kind for e in clinic.audit(before)} == {"enqueued", "claimed", "completed"}
    assert [e.kind for e in clinic.audit(after)] == ["enqueued"]


def test_an_event_that_comes_to_light_late_is_shown_and_kept(clinic: Clinic) -> None:
    """CP-72: a transaction that stays open for days commits events with an old time."""
    slow = clinic.database.connect("trunkline_producer")
    with slow.transaction():
        job = slow.execute(
            "select clinical.enqueue_job_v3('report_generation', 'slow', '{\"a\": 1}')"
        ).fetchone()
        assert job is not None
        clinic.pass_time("3 days")
        clinic.worker.value("select clinical.keep_audit()")
    assert [e.kind for e in clinic.audit(job[0])] == ["enqueued"]
    clinic.worker.value("select clinical.keep_audit()")
    clear(clinic.database.superuser(), "events")
    assert [e.kind for e in clinic.audit(job[0])] == ["enqueued"]


def test_events_are_kept_when_nobody_calls_for_it(clinic: Clinic) -> None:
    """CP-26, CP-97: a short retention removes the engine's events, and none of the audit."""
    job = clinic.start(AI)
    assert clinic.complete(job)
    before = clinic.audit(job)
    clinic.operator.value("select trunkline.set_setting('events_retention', '1 day')")
    clinic.pass_time("30 days")
    scoped = clinic.database.connect("trunkline_worker")
    scoped.execute("set trunkline.tenant = 'other'")
    events = "select count(*) as n from trunkline.events where job_id = %s"
    for _ in range(5):
        scoped.execute("select trunkline.maintain_partitions()")
        assert len(clinic.audit(job)) == len(before)
        clinic.pass_time("1 hour")
    for _ in range(20):
        clinic.worker.connection.execute("select trunkline.run_duties()")
        clinic.pass_time("1 hour")
        if clinic.rows(events, job)[0].n == 0:
            break
    assert clinic.rows(events, job)[0].n == 0
    assert clinic.audit(job) == before
    assert [e.kind for e in before] == ["enqueued", "claimed", "completed"]


def test_events_that_cannot_be_copied_stay(clinic: Clinic) -> None:
    """CP-97: a hook that fails keeps the partition, and the next maintenance tries again."""
    job = clinic.start(AI)
    assert clinic.complete(job)
    before = clinic.audit(job)
    superuser = clinic.database.superuser()
    row = superuser.execute(
        "select pg_get_functiondef('clinical.keep_events(timestamptz)'::regprocedure)"
    ).fetchone()
    assert row is not None
    superuser.execute(
        "create or replace function clinical.keep_events(p_before timestamptz) returns bigint"
        " language plpgsql as $$ begin raise exception 'no room'; end $$"
    )
    clinic.operator.value("select trunkline.set_setting('events_retention', '1 day')")
    clinic.pass_time("30 days")
    events = "select count(*) as n from trunkline.events where job_id = %s"
    for _ in range(20):
        clinic.worker.connection.execute("select trunkline.run_duties()")
        clinic.pass_time("1 hour")
    assert clinic.rows(events, job)[0].n == len(before)
    assert clinic.audit(job) == before
    superuser.execute(row[0].encode())
    for _ in range(20):
        clinic.worker.connection.execute("select trunkline.run_duties()")
        clinic.pass_time("1 hour")
    assert clinic.rows(events, job)[0].n == 0
    assert clinic.audit(job) == before
