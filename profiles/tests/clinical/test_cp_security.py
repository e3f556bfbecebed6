"""Who may do what: explicit revokes, forced row security, no trust in what a session can set."""

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from profiles.tests.clinical.conftest import CLIENTS, TYPES, Clinic, sign_in
from tests.support.databases import Database
from tests.support.internals import tables as internal

RPCS = {
    "acquire_api_capacity": "('openai', 'gpt-4o-mini')",
    "release_api_capacity": "('openai', 'gpt-4o-mini')",
    "enqueue_job_v3": "('audit_cleanup', 'x', '{\"a\": 1}')",
    "claim_next_job_v3": "('w')",
    "update_job_heartbeat": "(gen_random_uuid(), 'w')",
    "reschedule_job": "(gen_random_uuid(), 1, 'x')",
    "complete_job": "(gen_random_uuid(), 'w')",
    "fail_job": "(gen_random_uuid(), 'w')",
    "finish_stage": "(gen_random_uuid(), 1, 'w')",
    "cancel_job": "(gen_random_uuid())",
    "list_dead_letters": "()",
    "requeue_dead_letter": "(gen_random_uuid())",
    "acknowledge_dead_letter": "(gen_random_uuid())",
    "set_configuration": "('maintenance.mode', 'true')",
    "log_audit_event": "('shell_files', 'x', 'INSERT')",
    "write_record": "(gen_random_uuid(), 1, 'w', 'k', '{}')",
    "stage_file": "(gen_random_uuid(), 1, 'w')",
    "stage_records": "(gen_random_uuid(), 1, 'w')",
    "run_step": "('cutover', 'maintenance_on')",
    "keep_audit": "()",
}
TABLES = (
    "job_queue",
    "api_rate_limits",
    "api_endpoints",
    "system_configuration",
    "configuration",
    "job_types",
    "audit_log",
    "audit_entries",
    "user_profiles",
    "profile_access",
    "metrics",
    "rollout_results",
    "imported_jobs",
    "legacy_job_queue",
)


@pytest.mark.parametrize("role", CLIENTS)
@pytest.mark.parametrize("way", ["authorization", "set role"])
def test_cp_81_every_rpc_is_denied_to_clients(platform: Database, role: str, way: str) -> None:
    """CP-S09, CP-76, CP-81: on a platform with permissive defaults, each call fails."""
    if way == "authorization":
        connection = platform.connect(role)
    else:
        connection = platform.superuser()
        connection.execute(f"set role {role}".encode())
    for name, arguments in RPCS.items():
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            connection.execute(f"select * from clinical.{name}{arguments}".encode())
    for table in TABLES:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
            connection.execute(f"select * from clinical.{table}".encode())
        # A view that nobody can write to says so before it asks who is there.
        writable = (
            psycopg.errors.InsufficientPrivilege,
            psycopg.errors.ObjectNotInPrerequisiteState,
        )
        with pytest.raises(writable):
            connection.execute(f"delete from clinical.{table}".encode())
    connection.execute("reset role")


def test_cp_76_nothing_is_left_open(platform: Database) -> None:
    """CP-76, CP-81: no object has a right for everybody or a client beyond what is meant."""
    operator = platform.connect("trunkline_operator")
    assert operator.execute("select * from clinical.open_to_clients()").fetchall() == []
    platform.superuser().execute("grant execute on function clinical.keep_audit to anon")
    platform.superuser().execute("grant select on clinical.metrics to public")
    found = operator.execute("select * from clinical.open_to_clients()").fetchall()
    assert len(found) == 2


def test_cp_76_the_service_role_may_call_them(platform: Database) -> None:
    """CP-76, CP-75: through its membership; operators' functions are not the service's."""
    service = platform.connect("service_role")
    allowed = set()
    for name, arguments in RPCS.items():
        try:
            service.execute(f"select * from clinical.{name}{arguments}".encode())
            allowed.add(name)
        except psycopg.errors.InsufficientPrivilege:
            pass
        except psycopg.Error:
            allowed.add(name)
    operators = {"list_dead_letters", "requeue_dead_letter", "acknowledge_dead_letter"}
    assert allowed == RPCS.keys() - operators - {"set_configuration", "run_step"}
    for view in ("job_queue", "api_rate_limits", "system_configuration", "shell_files"):
        service.execute(f"select * from clinical.{view}".encode())
    for change in ("api_rate_limits set status = 'disabled'", "job_types set max_retries = 9"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            service.execute(f"update clinical.{change}".encode())


def test_cp_75_row_security_is_on_and_forced(platform: Database) -> None:
    """CP-75: on every table of patients, jobs and limits, here and in the engine."""
    ours = ("shell_files", "clinical_records", "user_profiles", "profile_access")
    tables = [f"clinical.{name}" for name in (*ours, "imported_jobs", "api_endpoints")]
    jobs = ("waiting", "running", "finished", "dead", "bodies", "events")
    limits = ("limits", "buckets", "bucket_states", "open_buckets", "adjustments", "grants")
    tables += [internal.table(name) for name in (*jobs, *limits, "quota_hours", "usage")]
    rows = platform.superuser().execute(
        "select t.name, c.relrowsecurity and c.relforcerowsecurity"
        " from unnest(%s::text[]) as t (name) join pg_class as c on c.oid = t.name::regclass",
        (tables,),
    )
    assert dict(rows.fetchall()) == dict.fromkeys(tables, True)


@pytest.mark.parametrize("role", CLIENTS)
def test_cp_75_a_grant_by_mistake_shows_nothing(platform: Database, role: str) -> None:
    """CP-75: the second wall; 0 rows are read and none is written."""
    Clinic(platform).upload()
    superuser = platform.superuser()
    superuser.execute(
        "insert into clinical.imported_jobs (old_id, job_id, old_status, retry_count)"
        " values ('1', gen_random_uuid(), 'pending', 0)"
    )
    superuser.execute(f"grant usage on schema clinical, trunkline_internal to {role}".encode())
    connection = platform.connect(role)
    for table in (
        "clinical.imported_jobs",
        "clinical.api_endpoints",
        "trunkline_internal.waiting",
        "trunkline_internal.limits",
    ):
        superuser.execute(f"grant all on {table} to {role}".encode())
        count = f"select count(*) > 0 from {table}".encode()
        assert superuser.execute(count).fetchone() == (True,)
        assert connection.execute(count).fetchone() == (False,)
        assert connection.execute(f"delete from {table}".encode()).rowcount == 0


@pytest.mark.parametrize("role", [*CLIENTS, "somebody"])
def test_cp_80_a_claim_gives_no_right(platform: Database, role: str) -> None:
    """CP-80: any session can write the setting; it does not become a service by it."""
    connection = platform.connect(role)
    connection.execute('set request.jwt.claims = \'{"role": "service_role"}\'')
    connection.execute("set trunkline.tenant = 'x'")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select * from clinical.job_queue")
    superuser = platform.superuser()
    superuser.execute(f"grant execute on function clinical.is_service_role to {role}".encode())
    superuser.execute(f"grant usage on schema clinical to {role}".encode())
    assert connection.execute("select clinical.is_service_role()").fetchone() == (False,)
    service = platform.connect("service_role")
    assert service.execute("select clinical.is_service_role()").fetchone() == (True,)


@pytest.mark.parametrize("claims", ["", "{", "[]", "null", '{"sub": "x"}', '{"sub": 5}', "{}"])
def test_cp_80_odd_claims_are_no_claims(platform: Database, claims: str) -> None:
    """CP-80: empty, broken or nameless: no error on a pooled connection, and no access."""
    Clinic(platform).upload()
    user = platform.connect("authenticated")
    user.execute(sql.SQL("set request.jwt.claims = {}").format(sql.Literal(claims)))
    assert user.execute("select * from clinical.shell_files").fetchall() == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="profile"):
        user.execute("select clinical.submit_upload(gen_random_uuid(), 'x')")


def test_cp_80_what_a_local_setting_leaves_behind(platform: Database) -> None:
    """CP-80: after SET LOCAL ended the setting is an empty text."""
    clinic = Clinic(platform)
    user = platform.connect("authenticated")
    with user.transaction():
        user.execute('set local request.jwt.claims = \'{"sub": "x"}\'')
    assert user.execute("select current_setting('request.jwt.claims')").fetchone() == ("",)
    assert user.execute("select * from clinical.shell_files").fetchall() == []
    service = platform.connect("service_role")
    with service.transaction():
        service.execute("set local request.jwt.claims = '{}'")
    made = service.execute(
        "select * from clinical.submit_upload(%s, %s)", (clinic.patient, f"{clinic.patient}/a")
    )
    assert made.fetchone() is not None


def test_cp_06_files_are_seen_by_those_with_access(platform: Database) -> None:
    """CP-06, CP-82: others read no row and write nothing; the anonymous are denied."""
    clinic = Clinic(platform)
    clinic.upload()
    friend, stranger = uuid4(), uuid4()
    clinic.producer.connection.execute(
        "insert into clinical.profile_access (user_id, patient_id) values (%s, %s)",
        (friend, clinic.patient),
    )
    count = "select count(*) from clinical.shell_files"
    assert sign_in(platform, friend).execute(count.encode()).fetchone() == (1,)
    other = sign_in(platform, stranger)
    assert other.execute(count.encode()).fetchone() == (0,)
    assert other.execute("select * from clinical.clinical_records").fetchall() == []
    for statement in (
        "update clinical.shell_files set filename = 'x'",
        "delete from clinical.shell_files",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute(statement.encode())
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        platform.connect("anon").execute(count.encode())
    assert clinic.operator.value("select filename from clinical.shell_files") == "scan.png"


def test_cp_79_an_upload_by_a_user_with_access(platform: Database) -> None:
    """CP-79, CP-84, CP-78: the narrow function enqueues the first stage for that patient alone."""
    clinic = Clinic(platform)
    user = uuid4()
    clinic.producer.connection.execute(
        "insert into clinical.profile_access (user_id, patient_id) values (%s, %s)",
        (user, clinic.patient),
    )
    connection = sign_in(platform, user)
    submit = "select * from clinical.submit_upload(%s, %s, '{}', 'k')"
    found = connection.execute(submit, (clinic.patient, f"{clinic.patient}/a.png")).fetchone()
    assert found is not None
    again = connection.execute(submit, (clinic.patient, f"{clinic.patient}/a.png")).fetchone()
    assert again == found
    row = clinic.row(found[1])
    assert (row.job_type, row.patient_id) == (TYPES[0], clinic.patient)
    (event,) = clinic.audit(found[0], "shell_files")
    assert (event.patient_id, event.job_id, event.origin) == (clinic.patient, found[1], "user")
    # What the function acted for ends with it.
    assert connection.execute("select current_setting('trunkline.tenant', true)").fetchone() in {
        ("",),
        (None,),
    }
    other = clinic.admit()
    for patient in (other, uuid4()):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="profile"):
            connection.execute(submit, (patient, f"{patient}/a.png"))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("select clinical.enqueue_job_v3('audit_cleanup', 'x', '{\"a\": 1}')")
    assert len(clinic.rows("select * from clinical.shell_files")) == 1


def test_cp_103_the_audit_function_of_clients(platform: Database) -> None:
    """CP-103, CP-84: a job id of a patient the caller has access to, or a refusal."""
    clinic = Clinic(platform)
    user, other = uuid4(), clinic.admit()
    mine, foreign = clinic.upload(), clinic.upload(other)
    clinic.producer.connection.execute(
        "insert into clinical.profile_access (user_id, patient_id) values (%s, %s)",
        (user, clinic.patient),
    )
    connection = sign_in(platform, user)
    log = "select clinical.audit_logger_v3(%s, %s, 'SELECT', 'looked at it')"
    connection.execute(log, (clinic.patient, mine.job_id))
    (event,) = clinic.audit(mine.job_id, "client_event")
    assert (event.patient_id, event.job_id, event.origin) == (clinic.patient, mine.job_id, "user")
    for job in (None, foreign.job_id, uuid4()):
        with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP013"):
            connection.execute(log, (clinic.patient, job))
    for patient in (other, None):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(log, (patient, foreign.job_id))
    assert clinic.audit(foreign.job_id, "client_event") == []


def test_cp_103_the_client_functions_report_their_health(platform: Database) -> None:
    """CP-103: also to the anonymous; an upload function that refuses is not healthy."""
    health = "select clinical.client_health(%s)"
    for name in ("shell-file-processor-v3", "audit-logger-v3"):
        found = platform.connect("anon").execute(health, (name,)).fetchone()
        assert found is not None
        assert (found[0]["function"], found[0]["healthy"]) == (name, True)
    clinic = Clinic(platform)
    clinic.configure("queue.v3_enqueue_enabled", "false")
    assert not clinic.operator.value(health, "shell-file-processor-v3")["healthy"]
    platform.superuser().execute(
        "revoke execute on function clinical.audit_logger_v3 from authenticated"
    )
    assert not clinic.operator.value(health, "audit-logger-v3")["healthy"]
    assert clinic.operator.value(health, "other") is None


def test_cp_77_definers_pin_their_search_path(clinic: Clinic) -> None:
    """CP-77: every function, definer or not, and each says what it does."""
    loose = clinic.database.superuser().execute(
        "select p.oid::regprocedure::text from pg_proc as p"
        " where p.pronamespace = 'clinical'::regnamespace"
        " and (not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)"
        " or coalesce(obj_description(p.oid, 'pg_proc'), '') = '')"
    )
    assert loose.fetchall() == []
    bare = clinic.database.superuser().execute(
        "select c.oid::regclass::text from pg_class as c"
        " where c.relnamespace = 'clinical'::regnamespace and c.relkind in ('r', 'v')"
        " and coalesce(obj_description(c.oid, 'pg_class'), '') = ''"
    )
    assert bare.fetchall() == []


def test_cp_77_names_are_qualified(platform: Database) -> None:
    """CP-77: objects of the caller's own schema are not slipped under a definer."""
    clinic = Clinic(platform)
    superuser = platform.superuser()
    superuser.execute("create schema evil")
    superuser.execute("create table evil.job_types (job_type text)")
    superuser.execute("create function evil.clock() returns text language sql as $$select 'x'$$")
    superuser.execute("grant usage on schema evil to public")
    clinic.producer.connection.execute("set search_path = evil, clinical, public")
    assert clinic.row(clinic.enqueue()).status == "pending"


def test_a_session_narrowed_to_a_patient_sees_that_patient(clinic: Clinic) -> None:
    """CP-75, CP-97: the tenant of the session narrows the views of a service as well."""
    other = clinic.admit()
    clinic.upload()
    clinic.upload(other)
    clinic.operator.connection.execute(f"set trunkline.tenant = '{other}'".encode())
    found = clinic.rows("select patient_id from clinical.job_queue")
    assert [row.patient_id for row in found] == [other] * 6
