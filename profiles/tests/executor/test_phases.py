"""Deployment in phases, and the way back: every step can be repeated, and no job is lost."""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from profiles.tests.executor.conftest import Desk
from tests.support.databases import Database
from trunkline import profiles, schema
from trunkline.errors import (
    MalformedSql,
    ProfileInUse,
    ProfileNotInstalled,
    ProfileSchemaName,
    SchemaMissing,
    UnknownPhase,
    UnknownProfile,
)
from trunkline.profiles import Phase, Profile, installer
from trunkline.profiles.validation import validate

Install = Callable[..., tuple[str, ...]]

PHASE_1 = ("phase1/record", "phase1/reclaim", "phase1/wrappers")
STEPS = ("restore_wrappers", "drop_views", "drop_reclaim", "drop_heartbeat")
VIEWS = ("stale_monitor", "stale_validation", "reclaim_history")


def there(database: Database, *names: str, schema: str = "executor") -> list[str]:
    """Which of these functions and views exist."""
    rows = database.superuser().execute(
        "select p.proname from pg_proc as p where p.pronamespace = to_regnamespace(%(s)s)::oid"
        " and p.proname = any (%(n)s)"
        " union all select c.relname from pg_class as c"
        " where c.relnamespace = to_regnamespace(%(s)s)::oid and c.relname = any (%(n)s)",
        {"s": schema, "n": list(names)},
    )
    return sorted(name for (name,) in rows)


def test_rc_39_phase_1_is_what_is_installed_unasked(database: Database, profile: Profile) -> None:
    """RC-39, RC-40, RC-42: the optional phases, and the tests, only when they are asked for."""
    assert installer.install(database.dsn, profile) == PHASE_1
    assert there(database, "reclaim_stale_jobs", "executor_jobs") == [
        "executor_jobs",
        "reclaim_stale_jobs",
    ]
    assert there(database, "update_job_heartbeat", "validation_tests") == []
    assert there(database, *(f"executor_jobs_{view}" for view in VIEWS)) == []
    assert installer.install(database.dsn, profile, ["2"]) == ("phase2/heartbeat",)
    assert installer.install(database.dsn, profile, ["phase3"]) == ("phase3/views",)


def test_rc_39_no_file_of_tests_is_ever_applied(profile: Profile) -> None:
    """RC-39, RC-41: the tests belong to no phase, so that no command applies them for good."""
    applied = {script.name for phase in profile.phases for script in profile.scripts(phase)}
    assert applied == {"record", "reclaim", "wrappers", "heartbeat", "views"}


def test_rc_40_a_repeated_installation_changes_nothing(install: Install) -> None:
    """RC-40: and says so."""
    assert install("phase1") == PHASE_1
    assert install("phase1") == ()
    assert install() == ("phase2/heartbeat", "phase3/views")


def test_rc_41_dependencies_decide_the_order(profile: Profile) -> None:
    """RC-41: the wrappers, 000300 in the source, come before the heartbeat, 000200."""
    order = [script for phase in profile.select(["3", "2"]) for script in profile.scripts(phase)]
    assert [script.name for script in order] == [
        "record",
        "reclaim",
        "wrappers",
        "heartbeat",
        "views",
    ]
    numbers = {s.name: s.text.split("-- source: ")[1][:6] for s in order}
    assert numbers["heartbeat"] < numbers["wrappers"]


def test_rc_41_what_cannot_be_ordered_is_refused(tmp_path: Path) -> None:
    """RC-41: a circle, a missing script and a missing header are named."""
    folder = tmp_path / "one"
    folder.mkdir()
    broken = Profile("x", "", "x", tmp_path, (Phase("one", ""),), ())
    (folder / "a.sql").write_text("-- requires: b\n")
    with pytest.raises(MalformedSql, match="requires b, which is not there"):
        broken.scripts(broken.phases[0])
    (folder / "b.sql").write_text("-- requires: a\n")
    with pytest.raises(MalformedSql, match="requires itself"):
        broken.scripts(broken.phases[0])
    (folder / "b.sql").write_text("select 1\n")
    with pytest.raises(MalformedSql, match="requires: name"):
        broken.scripts(broken.phases[0])


def test_rc_s09_phase_by_phase_and_back_and_again(database: Database, install: Install) -> None:
    """RC-S09, RC-40, RC-60, RC-64: phase 1 alone works; the rest later; back; and all again."""
    profile = profiles.get("executor")
    install("phase1")
    desk = Desk(database)
    job = desk.start()
    with pytest.raises(psycopg.errors.UndefinedFunction):
        desk.beat(job)
    desk.pass_time("31 minutes")
    assert [row.id for row in desk.reclaim()] == [job]
    install("phase3")
    assert len(desk.rows("select * from executor.executor_jobs_reclaim_history")) == 1
    assert desk.rows("select count(*) from executor.executor_jobs_stale_monitor") == [(0,)]
    install("phase2")
    desk.pass_time("1 minute")
    assert desk.worker.claim("w2").jobs == [job]
    assert desk.beat(job, "w2")
    desk.pass_time("2 minutes")
    assert installer.rollback(database.dsn, profile) == STEPS
    gone = ("reclaim_stale_jobs", "update_job_heartbeat", "run_wake_ups", "executor_metrics")
    assert there(database, *gone, *(f"executor_jobs_{view}" for view in VIEWS)) == []
    assert install() == (*PHASE_1[1:], "phase2/heartbeat", "phase3/views")
    assert desk.beat(job, "w2")
    assert len(desk.rows("select * from executor.executor_jobs_reclaim_history")) == 1
    assert all(check.passed for check in validate(database.dsn, profiles.get("executor")))


def test_rc_59_wrappers_first_and_heartbeat_last(desk: Desk, database: Database) -> None:
    """RC-59: after each step the system still answers; the wake-ups are as before phase 1."""
    profile = profiles.get("executor")
    assert tuple(step.name for step in profile.rollback if not step.optional) == STEPS
    assert profile.rollback[-1].optional
    job = desk.start()
    desk.pass_time("31 minutes")
    installer.rollback(database.dsn, profile)
    answer = desk.wake("process_orchestrator_jobs")
    assert (answer.reclaimed, answer.woken, answer.error) == (0, "orchestrator", None)
    assert desk.row(job).status == "running"
    # The engine's own duty goes on: no roll-back of a profile leaves jobs stuck.
    desk.worker.connection.execute("select trunkline.run_duties()")
    assert desk.row(job).status == "queued"


def test_rc_59_the_heartbeat_stays_while_workers_call_it(desk: Desk, database: Database) -> None:
    """RC-59: the roll-back stops there and names them; what it did before stays done."""
    profile = profiles.get("executor")
    job = desk.start(worker="old-worker")
    assert desk.beat(job, "old-worker")
    with pytest.raises(ProfileInUse, match="old-worker"):
        installer.rollback(database.dsn, profile)
    assert there(database, "update_job_heartbeat", "reclaim_stale_jobs") == ["update_job_heartbeat"]
    desk.pass_time("61 seconds")
    assert installer.rollback(database.dsn, profile) == STEPS
    assert there(database, "update_job_heartbeat") == []


def test_rc_60_rolling_back_keeps_the_data(desk: Desk, database: Database) -> None:
    """RC-60: jobs, history, TTLs of operators; only a purge removes the profile's own tables."""
    profile = profiles.get("executor")
    desk.operator.value("select executor.set_job_type('run_tsa', '45 minutes')")
    dead = desk.start()
    attempts = desk.rows("select attempt from executor.executor_jobs_stale_monitor")
    desk.worker.connection.execute(
        "select trunkline.fail('w1', array[%s]::uuid[], array[%s], null, array[false])",
        (dead, attempts[0].attempt),
    )
    for _ in range(2):
        # Twice: every step is harmless when there is nothing to do.
        assert installer.rollback(database.dsn, profile) == STEPS
    assert desk.row(dead).status == "dead"
    installer.install(database.dsn, profile, ["1", "2", "3"])
    (row,) = desk.rows("select ttl from executor.executor_job_types where type = 'run_tsa'")
    assert row.ttl.total_seconds() == 45 * 60
    assert installer.rollback(database.dsn, profile, purge=True) == (*STEPS, "drop_record")
    assert desk.operator.value("select to_regnamespace('executor')") is None
    assert desk.operator.value("select state from trunkline.jobs where job_id = %s", dead) == "dead"
    assert installer.rollback(database.dsn, profile) == ()
    assert len(installer.install(database.dsn, profile, ["1", "2", "3"])) == 5
    assert desk.row(dead).status == "dead"


def test_rc_61_a_worker_outlives_the_heartbeat_function(desk: Desk, database: Database) -> None:
    """RC-61: its beat fails, its job goes on and ends well."""
    job = desk.enqueue()
    claim = desk.worker.claim("w1")
    assert desk.beat(job)
    installer.rollback(database.dsn, profiles.get("executor"), force=True)
    with pytest.raises(psycopg.errors.UndefinedFunction):
        desk.beat(job)
    assert [v.verdict for v in desk.worker.batch("heartbeat", "w1", claim.attempts)] == ["ok"]
    assert [v.verdict for v in desk.worker.batch("complete", "w1", claim.attempts)] == ["ok"]
    assert desk.row(job).status == "succeeded"


@pytest.mark.parametrize("place", ["documents", "user", "public"])
def test_another_schema(database: Database, profile: Profile, place: str) -> None:
    """RC-39: the source used public; any schema will do, once its owner allows it."""
    if place == "public":
        database.superuser().execute("grant usage, create on schema public to trunkline_owner")
    installer.install(database.dsn, profile, ["1", "2", "3"], schema=place)
    assert all(check.passed for check in validate(database.dsn, profile, schema=place))
    operator = database.connect("trunkline_operator")
    found = operator.execute(f'select count(*) from "{place}".executor_jobs'.encode())
    assert found.fetchone() == (0,)
    states = installer.status(database.dsn, profile, schema=place)
    assert {state.state for state in states} == {"applied"}
    installer.rollback(database.dsn, profile, schema=place, purge=True)
    assert there(database, "executor_jobs", "reclaim_stale_jobs", schema=place) == []


@pytest.mark.parametrize(
    "name", ["", "1st", "Executor", "a-b", "a.b", "pg_x", "trunkline", "x" * 64]
)
def test_a_name_that_cannot_be_a_schema(database: Database, profile: Profile, name: str) -> None:
    with pytest.raises(ProfileSchemaName):
        installer.install(database.dsn, profile, schema=name or "-")


def test_a_changed_script_is_applied_again(
    database: Database, profile: Profile, install: Install
) -> None:
    """RC-60: an upgrade of the package brings the new text; what is the same is left alone."""
    install()
    database.superuser().execute(
        "update executor.trunkline_profile_steps set sha256 = 'old' where script = 'record'"
    )
    states = {s.script: s.state for s in installer.status(database.dsn, profile)}
    assert states["record"] == "changed"
    assert install() == ("phase1/record",)


def test_the_engine_can_be_installed_again_under_it(
    database: Database, profile: Profile, install: Install
) -> None:
    """RC-60: its views go with the engine; what is broken is applied again, and all of it works."""
    install()
    # The roles are those of other tests, too.
    schema.uninstall(database.dsn, drop_roles=False, cascade=True)
    schema.install(database.dsn)
    assert "phase1/record" in install()
    assert install() == ()
    assert len(install(again=True)) == 5
    assert all(check.passed for check in validate(database.dsn, profiles.get("executor")))


def test_wrong_requests(database: Database, server: object) -> None:
    with pytest.raises(UnknownProfile, match="executor"):
        profiles.get("nothing")
    with pytest.raises(UnknownPhase, match="phase3"):
        installer.install(database.dsn, profiles.get("executor"), ["4"])
    with pytest.raises(ProfileNotInstalled):
        validate(database.dsn, profiles.get("executor"))
    database.superuser().execute("drop schema trunkline, trunkline_internal cascade")
    with pytest.raises(SchemaMissing):
        installer.install(database.dsn, profiles.get("executor"))


def test_the_profile_uses_the_public_surface_only(profile: Profile) -> None:
    """Nothing of the engine's internal schema is named in any of its files."""
    root = Path(str(profile.root))
    files = list(root.rglob("*.sql"))
    assert len(files) > 10
    assert [path.name for path in files if "trunkline_internal" in path.read_text()] == []
