"""The split of duties: what the database does, and what clients may do with the restricted key."""

from uuid import UUID, uuid4

import psycopg
import pytest

from profiles.tests.clinical.conftest import TYPES, Clinic, sign_in
from profiles.tests.clinical.test_cp_rollout import list_legacy, step
from tests.support.databases import Database


def user_of(clinic: Clinic) -> UUID:
    """A signed-in user with access to the patient."""
    user = uuid4()
    clinic.producer.connection.execute(
        "insert into clinical.profile_access (user_id, patient_id) values (%s, %s)",
        (user, clinic.patient),
    )
    return user


def test_cp_82_the_database_coordinates(platform: Database) -> None:
    """CP-82: sign-in, row security, jobs, one limit for all, an audit with the job's id."""
    clinic = Clinic(platform)
    mine, other = sign_in(platform, user_of(clinic)), sign_in(platform, uuid4())
    path = f"{clinic.patient}/a.png"
    file, job = mine.execute(
        "select file_id, job_id from clinical.submit_upload(%s, %s)", (clinic.patient, path)
    ).fetchone() or (None, None)
    look = "select id, storage_path from clinical.shell_files"
    assert mine.execute(look.encode()).fetchall() == [(file, path)]
    assert other.execute(look.encode()).fetchall() == []
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set concurrent_requests = 1"
    )
    assert clinic.complete(clinic.claim().job_id)
    # Whoever asks, on whichever connection: one place.
    ocr = clinic.claim("w2")
    assert ocr.job_type == "fast_queue_ocr"
    assert not clinic.acquire(1, "google/vision-api").granted
    assert clinic.complete(ocr.job_id, "w2")
    events = clinic.rows("select * from clinical.audit_log where patient_id = %s", clinic.patient)
    assert {event.job_id for event in events} >= {job, ocr.job_id}
    assert None not in {event.job_id for event in events}


def test_cp_84_the_functions_of_clients(platform: Database) -> None:
    """CP-84: a file is made once and is the correlation id; events name a job; twelve are gone."""
    clinic = Clinic(platform)
    client = sign_in(platform, user_of(clinic))
    submit = "select file_id, job_id from clinical.submit_upload(%s, %s, '{}', 'key')"
    given = (clinic.patient, f"{clinic.patient}/a.png")
    file, job = client.execute(submit, given).fetchone() or (None, None)
    assert client.execute(submit, given).fetchone() == (file, job)
    assert clinic.complete(clinic.claim().job_id)
    assert [row.correlation_id for row in clinic.rows("select * from clinical.job_queue")] == [
        str(file)
    ] * 6
    log = "select clinical.audit_logger_v3(%s, %s, 'SELECT', 'looked at it')"
    client.execute(log, (clinic.patient, job))
    assert clinic.audit(job, "client_event")[0].job_id == job
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP013"):
        client.execute(log, (clinic.patient, None))
    list_legacy(clinic)
    step(clinic, "cutover", "functions_healthy", evidence="seen")
    assert step(clinic, "cutover", "remove_legacy", evidence="deleted").detail["changed"] == 12


def test_cp_78_clients_have_the_restricted_key_alone(platform: Database) -> None:
    """CP-78: what it opens is an upload; it is no service, by no setting and no role."""
    clinic = Clinic(platform)
    client = sign_in(platform, user_of(clinic))
    client.execute(
        "select clinical.submit_upload(%s, %s)", (clinic.patient, f"{clinic.patient}/a.png")
    )
    # The gateway may take the role of a service, the role of signed-in users may not.
    signed_in = platform.connect("authenticated")
    for role in ("trunkline_producer", "trunkline_worker", "trunkline_operator", "service_role"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            signed_in.execute(f"set role {role}".encode())
        member = "select pg_has_role('authenticated', %s, 'member')"
        assert clinic.operator.value(member, role) is False
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        client.execute("select clinical.claim_next_job_v3('w')")
    assert clinic.claim().job_type == TYPES[0]
