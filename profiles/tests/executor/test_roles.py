"""Who may call what: each role, those of a platform included."""

from collections.abc import Iterator

import psycopg
import pytest

from profiles.tests.executor.conftest import TYPES
from tests.support.databases import Database
from tests.support.platform_roles import project
from tests.support.servers import Server
from trunkline import profiles
from trunkline.profiles import installer, verification

CALLS = {
    "reclaim_stale_jobs": "select executor.reclaim_stale_jobs()",
    "process_orchestrator_jobs": "select executor.process_orchestrator_jobs()",
    "wake_execution_engine": "select executor.wake_execution_engine()",
    "run_wake_ups": "select executor.run_wake_ups()",
    "update_job_heartbeat": "select executor.update_job_heartbeat(gen_random_uuid(), 'w')",
    "enqueue_job": "select executor.enqueue_job('run_tsa')",
    "set_job_type": "select executor.set_job_type('run_tsa')",
    "requeue_dead_jobs": "select executor.requeue_dead_jobs()",
}
SCHEDULER = {"reclaim_stale_jobs", "process_orchestrator_jobs", "wake_execution_engine"} | {
    "run_wake_ups"
}
ALLOWED = {
    "trunkline_worker": SCHEDULER | {"update_job_heartbeat"},
    "trunkline_operator": SCHEDULER | {"enqueue_job", "set_job_type", "requeue_dead_jobs"},
    "trunkline_producer": {"enqueue_job"},
    "trunkline_reader": set(),
    "somebody": set(),
    "anon": set(),
    "authenticated": set(),
}
MONITORS = (
    "executor_jobs_stale_monitor",
    "executor_jobs_stale_validation",
    "executor_jobs_reclaim_history",
    "executor_metrics",
)


@pytest.fixture
def platform(platform_server: Server) -> Iterator[Database]:
    """A database whose platform gives every new object to its public roles."""
    with project(platform_server, "anon", "authenticated") as database:
        yield database


@pytest.fixture
def installed(platform: Database) -> Database:
    installer.install(platform.dsn, profiles.get("executor"), ["1", "2", "3"])
    return platform


@pytest.mark.parametrize("role", ALLOWED)
def test_rc_62_each_role_may_call_its_own(installed: Database, role: str) -> None:
    """RC-62: heartbeat for workers, reclaim and wrappers for scheduler and operators, else none."""
    connection = installed.connect(role)
    allowed = set()
    for name, call in CALLS.items():
        try:
            connection.execute(call.encode())
            allowed.add(name)
        except psycopg.errors.InsufficientPrivilege:
            pass
    assert allowed == ALLOWED[role]


@pytest.mark.parametrize("role", ["anon", "authenticated", "public"])
def test_rc_28_nothing_can_be_called_with_a_public_key(installed: Database, role: str) -> None:
    """RC-28, RC-62: a wake-up is a notice within the database, sent by a role that was granted it.

    There is no address to call and no key to know; what a public key acts as may do nothing here.
    """
    superuser = installed.superuser()
    grantee = (
        0
        if role == "public"
        else superuser.execute("select oid from pg_roles where rolname = %s", (role,)).fetchall()[
            0
        ][0]
    )
    open_objects = superuser.execute(
        "select p.oid::regprocedure::text from pg_proc as p, aclexplode(p.proacl) as a"
        " where p.pronamespace = 'executor'::regnamespace and a.grantee = %(g)s"
        " union all select c.oid::regclass::text from pg_class as c, aclexplode(c.relacl) as a"
        " where c.relnamespace = 'executor'::regnamespace and a.grantee = %(g)s"
        " union all select p.oid::regprocedure::text from pg_proc as p"
        " where p.pronamespace = 'executor'::regnamespace and p.proacl is null",
        {"g": grantee},
    )
    assert open_objects.fetchall() == []


@pytest.mark.parametrize("view", [*MONITORS, "executor_jobs"])
def test_rc_37_views_are_for_operators(installed: Database, view: str) -> None:
    """RC-37: the monitors for operators only; executor_jobs also for producers and readers."""
    allowed = {"trunkline_operator"}
    if view == "executor_jobs":
        allowed |= {"trunkline_producer", "trunkline_reader"}
    found = set()
    for role in ALLOWED:
        try:
            installed.connect(role).execute(f"select * from executor.{view}".encode())
            found.add(role)
        except psycopg.errors.InsufficientPrivilege:
            pass
    assert found == allowed


def test_rc_37_views_keep_to_the_tenant(installed: Database) -> None:
    """RC-37: a session narrowed to a tenant sees the rows of that tenant, in every view."""
    producer, worker = (
        installed.connect("trunkline_producer"),
        installed.connect("trunkline_worker"),
    )
    for tenant in ("one", "two"):
        producer.execute("select trunkline.enqueue('run_tsa', p_tenant => %s)", (tenant,))
    worker.execute("select trunkline.claim('w', p_limit => 2)")
    operator = installed.connect("trunkline_operator")
    assert operator.execute("select count(*) from executor.executor_jobs").fetchone() == (2,)
    operator.execute("set trunkline.tenant = 'one'")
    for view in ("executor_jobs", "executor_jobs_stale_monitor"):
        found = operator.execute(f"select count(*) from executor.{view}".encode())
        assert found.fetchone() == (1,)
    installed.move_time("31 minutes")
    worker.execute("select executor.reclaim_stale_jobs()")
    history = operator.execute("select count(*) from executor.executor_jobs_reclaim_history")
    assert history.fetchone() == (1,)


def test_definer_functions_pin_their_search_path(installed: Database) -> None:
    """RC-62: nobody can slip another function under a definer."""
    loose = installed.superuser().execute(
        "select p.oid::regprocedure::text from pg_proc as p"
        " where p.pronamespace = 'executor'::regnamespace"
        " and not coalesce('search_path=pg_catalog, pg_temp' = any (p.proconfig), false)"
    )
    assert loose.fetchall() == []
    bare = installed.superuser().execute(
        "select p.oid::regprocedure::text from pg_proc as p"
        " where p.pronamespace = 'executor'::regnamespace"
        " and coalesce(obj_description(p.oid, 'pg_proc'), '') = ''"
    )
    assert bare.fetchall() == []


def test_types_are_those_of_the_specification(installed: Database) -> None:
    """RC-63, RC-05: six types on one queue, decisions on the other."""
    rows = installed.connect("trunkline_operator").execute(
        "select queue, count(*) from executor.executor_job_types group by queue order by queue"
    )
    assert rows.fetchall() == [("fase1-executor", 1), ("orchestrator", len(TYPES))]


@pytest.mark.parametrize("role", ["trunkline_worker", "trunkline_producer"])
def test_a_registration_does_not_take_a_type_out_of_the_profile(
    installed: Database, role: str
) -> None:
    """RC-62: the views find jobs by the profile of their type, which only operators change."""
    producer = installed.connect("trunkline_producer")
    producer.execute("select executor.enqueue_job('run_tsa')")
    change = "select trunkline.register_task('run_tsa', p_profile => 'other')"
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "TL022"):
        installed.connect(role).execute(change.encode())
    count = "select count(*) from executor.executor_jobs"
    assert producer.execute(count.encode()).fetchone() == (1,)
    installed.connect("trunkline_operator").execute(change.encode())
    assert producer.execute(count.encode()).fetchone() == (0,)


def test_a_worker_of_the_executor_reads_no_job(installed: Database) -> None:
    """RC-62: it has what its claims return."""
    worker = installed.connect("trunkline_worker")
    for view in ("executor_jobs", "executor_job_types", *MONITORS, "executor_heartbeats"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            worker.execute(f"select * from executor.{view}".encode())


def test_verify_knows_what_a_profile_grants_to_a_platform(platform: Database) -> None:
    installer.install(platform.dsn, profiles.get("clinical"), ["1", "2"])
    superuser = platform.superuser()
    assert verification.verify(platform.dsn) == []
    superuser.execute("revoke execute on function clinical.submit_upload from authenticated")
    superuser.execute("grant execute on function clinical.submit_upload to anon")
    superuser.execute("drop policy profile_access on clinical.shell_files")
    assert [str(difference) for difference in verification.verify(platform.dsn)] == [
        "extra grant execute on function clinical.submit_upload to anon",
        "missing grant execute on function clinical.submit_upload to authenticated",
        "missing policy clinical.shell_files.profile_access",
    ]
