"""Checklist, cut-over and roll-back: each step with a dry run and a result on record."""

from typing import Any

import pytest

from profiles.tests.clinical.conftest import AI, TYPES, Clinic
from tests.support.databases import Database
from trunkline.errors import ProfileError, TrunklineError
from trunkline.profiles import Profile, installer, profile, rollout
from trunkline_profiles.clinical import PROFILE

ROLLBACK = [
    "enqueue_off",
    "claims_off",
    "workers_zero",
    "return_jobs",
    "legacy_views",
    "restore_legacy",
    "verify",
]
CUTOVER = [
    "maintenance_on",
    "functions_healthy",
    "remove_legacy",
    "claims_on",
    "claims_checked",
    "limits_checked",
    "upload_checked",
    "maintenance_off",
]


def step(clinic: Clinic, plan: str, name: str, **options: Any) -> rollout.Result:
    return rollout.run(clinic.database.dsn, PROFILE, plan, name, **options)


def list_legacy(clinic: Clinic) -> None:
    clinic.operator.connection.execute(
        "insert into clinical.legacy_functions (name)"
        " select 'legacy-' || n from generate_series(1, 12) as n on conflict do nothing"
    )


def rehearse(clinic: Clinic) -> None:
    for name in ROLLBACK:
        step(clinic, "rollback", name, dry_run=True)


def finish_upload(clinic: Clinic) -> None:
    clinic.upload()
    for _ in TYPES[:6]:
        assert clinic.complete(clinic.claim().job_id)


def test_cp_87_the_checklist(clinic: Clinic) -> None:
    """CP-87, CP-92, CP-93: nine points, all of which must be ticked, the rehearsed way back too."""
    found = {one.step: one for one in rollout.check(clinic.database.dsn, PROFILE)}
    assert list(found) == [
        "schema",
        "rpcs",
        "limits",
        "worker",
        "security",
        "audit",
        "indexes",
        "legacy_listed",
        "rollback_rehearsed",
    ]
    open_points = {name for name, one in found.items() if one.outcome != "done"}
    assert open_points == {"limits", "worker", "legacy_listed", "rollback_rehearsed"}
    list_legacy(clinic)
    rehearse(clinic)
    for name in ("limits", "worker"):
        assert step(clinic, "checklist", name).outcome == "refused"
        assert step(clinic, "checklist", name, evidence="seen by two").outcome == "done"
    found = {one.step: one for one in rollout.check(clinic.database.dsn, PROFILE)}
    assert {one.outcome for one in found.values()} == {"done"}


@pytest.mark.parametrize(
    ("point", "damage"),
    [
        ("rpcs", "drop function clinical.fail_job"),
        ("rpcs", "revoke execute on function clinical.complete_job from trunkline_worker"),
        ("security", "grant select on clinical.job_queue to public"),
        ("audit", "alter table clinical.clinical_records disable trigger require_audit"),
        ("schema", "delete from clinical.trunkline_profile_steps"),
    ],
)
def test_cp_87_a_point_that_does_not_hold_is_open(clinic: Clinic, point: str, damage: str) -> None:
    """CP-87: the checklist looks, it does not believe."""
    assert step(clinic, "checklist", point).outcome == "done"
    clinic.database.superuser().execute(damage.encode())
    result = step(clinic, "checklist", point)
    assert result.outcome == "refused"
    assert result.detail["problems"]


def test_cp_88_the_cut_over(clinic: Clinic, health: str) -> None:
    """CP-88, CP-90, CP-65: in its order, each step tried first, each on record."""
    list_legacy(clinic)
    order = [one.step for one in rollout.steps(clinic.database.dsn, PROFILE, "cutover")]
    assert order == CUTOVER
    clinic.configure("maintenance.stop_uploads", "true")
    assert step(clinic, "cutover", "maintenance_on", dry_run=True).outcome == "would_do"
    assert clinic.operator.value("select clinical.configured('maintenance.mode')") == "false"
    step(clinic, "cutover", "maintenance_on")
    assert clinic.operator.value("select clinical.configured('maintenance.mode')") == "true"
    with pytest.raises(Exception, match="uploads are stopped"):
        clinic.upload()
    # New functions are healthy before old ones go.
    refused = step(clinic, "cutover", "remove_legacy", evidence="deleted")
    assert refused.detail["problems"] == ["functions_healthy comes first"]
    ill = rollout.ask_health([f"{health}/ok", f"{health}/bad", "http://127.0.0.1:9/"])
    assert len(ill) == 2
    assert step(clinic, "cutover", "functions_healthy", problems=ill).outcome == "refused"
    assert step(clinic, "cutover", "remove_legacy", evidence="x").outcome == "refused"
    well = rollout.ask_health([f"{health}/ok"])
    # Nobody looked at what is deployed.
    unseen = step(clinic, "cutover", "functions_healthy")
    assert unseen.detail["problems"] == ["state with evidence how it was verified"]
    assert step(clinic, "cutover", "remove_legacy", evidence="x").outcome == "refused"
    seen = step(clinic, "cutover", "functions_healthy", problems=well, evidence="asked")
    assert seen.outcome == "done"
    assert step(clinic, "cutover", "remove_legacy").outcome == "refused"
    assert step(clinic, "cutover", "remove_legacy", evidence="deleted").detail["changed"] == 12
    # Workers up, and only then claims on.
    assert step(clinic, "cutover", "claims_on").outcome == "refused"
    clinic.worker.connection.execute("select trunkline.register_worker('w1', '{clinical}')")
    assert step(clinic, "cutover", "claims_on").outcome == "done"
    assert step(clinic, "cutover", "claims_checked").outcome == "refused"
    clinic.configure("maintenance.stop_uploads", "false")
    assert step(clinic, "cutover", "upload_checked").outcome == "refused"
    finish_upload(clinic)
    for name in CUTOVER[4:]:
        assert step(clinic, "cutover", name).outcome == "done", name
    assert clinic.operator.value("select clinical.configured('maintenance.mode')") == "false"
    last = {one.step: one for one in rollout.steps(clinic.database.dsn, PROFILE, "cutover")}
    assert {one.outcome for one in last.values()} == {"done"}
    assert last["remove_legacy"].evidence == "deleted"
    assert all(one.actor and one.last_at for one in last.values())


def test_cp_103_a_function_without_an_answer_is_not_healthy(clinic: Clinic) -> None:
    """CP-103: the step has looked at both functions, or it is refused."""
    result = step(clinic, "cutover", "functions_healthy", evidence="seen")
    assert [one["function"] for one in result.detail["health"]] == [
        "shell-file-processor-v3",
        "audit-logger-v3",
    ]
    clinic.database.superuser().execute(
        "create or replace function clinical.client_health(p_function text) returns jsonb"
        " language sql stable as 'select null::jsonb'"
    )
    refused = step(clinic, "cutover", "functions_healthy", evidence="seen")
    assert refused.detail["problems"] == ["shell-file-processor-v3", "audit-logger-v3"]


def test_cp_s12_the_roll_back_with_25_jobs_in_flight(clinic: Clinic) -> None:
    """CP-S12, CP-89, CP-90, CP-102: no worker, all claimable again, nothing missing, old words."""
    uploads = [clinic.upload() for _ in range(30)]
    flying = [clinic.claim(f"w{number % 3}").job_id for number in range(25)]
    for worker in ("w0", "w1", "w2"):
        clinic.worker.connection.execute(
            "select trunkline.register_worker(%s, '{clinical}')", (worker,)
        )
    rehearse(clinic)
    assert {clinic.row(job).status for job in flying} == {"processing"}
    list_legacy(clinic)
    assert step(clinic, "rollback", "enqueue_off").outcome == "done"
    with pytest.raises(Exception, match="enqueue disabled"):
        clinic.upload()
    assert step(clinic, "rollback", "claims_off").detail["changed"] == 3
    states = clinic.rows("select distinct state from trunkline.workers")
    assert [row.state for row in states] == ["draining"]
    assert step(clinic, "rollback", "workers_zero").outcome == "refused"
    assert step(clinic, "rollback", "return_jobs").outcome == "refused"
    for worker in ("w0", "w1", "w2"):
        clinic.worker.connection.execute("select trunkline.stop_worker(%s)", (worker,))
    assert step(clinic, "rollback", "workers_zero").outcome == "done"
    assert step(clinic, "rollback", "return_jobs").detail["changed"] == 25
    rows = [clinic.row(job) for job in flying]
    assert {(row.status, row.retry_count, row.worker_id) for row in rows} == {("pending", 0, None)}
    assert step(clinic, "rollback", "legacy_views").outcome == "done"
    assert step(clinic, "rollback", "restore_legacy", evidence="deployed tag v2").outcome == "done"
    result = step(clinic, "rollback", "verify")
    assert (result.outcome, result.detail["uploads"]) == ("done", 30)
    reader = clinic.database.connect("trunkline_producer")
    old = reader.execute("select status, error_message from clinical.legacy_job_queue").fetchall()
    assert old == [("pending", None)] * 30
    # Claims on again: every upload is there to be processed.
    clinic.configure("worker.claims_enabled", "true")
    taken = {clinic.claim("later").job_id for _ in range(30)}
    assert taken == {made.job_id for made in uploads}
    running = reader.execute("select distinct status from clinical.legacy_job_queue").fetchall()
    assert running == [("running",)]


def test_cp_89_old_readers_find_old_words(clinic: Clinic) -> None:
    """CP-89: status running, errors as a text, and not before the roll-back opens the views."""
    job = clinic.start(AI)
    reader = clinic.database.connect("trunkline_producer")
    look = "select status, error_message from clinical.legacy_job_queue where id = %s"
    with pytest.raises(Exception, match="permission denied"):
        reader.execute(look, (str(job),))
    step(clinic, "rollback", "legacy_views")
    assert reader.execute(look, (str(job),)).fetchone() == ("running", None)
    assert clinic.fail(job)
    assert reader.execute(look, (str(job),)).fetchone() == ("pending", "it broke")
    # A repeated installation closes them again.
    installer.install(clinic.database.dsn, PROFILE, again=True)
    with pytest.raises(Exception, match="permission denied"):
        reader.execute(look, (str(job),))


@pytest.mark.parametrize(
    ("plan", "name"),
    [*(("cutover", name) for name in CUTOVER), *(("rollback", name) for name in ROLLBACK)],
)
def test_cp_90_a_dry_run_changes_nothing_but_the_record(
    clinic: Clinic, plan: str, name: str
) -> None:
    """CP-90: configuration, limits, jobs and lists are as they were."""
    list_legacy(clinic)
    clinic.start()
    look = (
        "select (select json_agg(c) from clinical.system_configuration as c)::text as a,"
        " (select json_agg(f) from clinical.legacy_functions as f)::text as b,"
        " (select json_agg((j.status, j.worker_id)) from clinical.job_queue as j)::text as c,"
        " (select json_agg((l.status, l.active_requests) order by l.id)"
        " from clinical.api_rate_limits as l)::text as d,"
        " (select json_agg(w.state) from trunkline.workers as w)::text as e"
    )
    before = clinic.rows(look)
    result = step(clinic, plan, name, dry_run=True)
    assert result.dry_run
    assert result.outcome in {"would_do", "refused"}
    assert clinic.rows(look) == before
    assert len(clinic.rows("select * from clinical.rollout_results")) == 1


def test_cp_90_what_there_is_no_step_for(clinic: Clinic) -> None:
    """CP-90: an unknown step names the known ones; a profile without steps says so."""
    with pytest.raises(TrunklineError, match="no step"):
        step(clinic, "cutover", "jump")
    plain = profile.Profile("p", "", "p", PROFILE.root, (), ())
    with pytest.raises(ProfileError, match="no steps"):
        rollout.steps(clinic.database.dsn, plain)
    with pytest.raises(ProfileError, match="health"):
        rollout.ask_health(["file:///etc/passwd"])


def test_cp_85_the_schema_is_one_step_and_can_be_repeated(
    database: Database, profile: Profile
) -> None:
    """CP-85, CP-90: tried first, all of it in one transaction; a second time nothing happens."""
    tried = installer.install(database.dsn, profile, dry_run=True)
    there = "select to_regnamespace('clinical') is not null"
    assert database.superuser().execute(there).fetchone() == (False,)
    applied = installer.install(database.dsn, profile)
    assert applied == tried
    assert {name.split("/")[0] for name in applied} == {"phase1"}
    assert installer.install(database.dsn, profile) == ()
    assert installer.install(database.dsn, profile, again=True) == applied
    both = installer.install(database.dsn, profile, ["2"], dry_run=True)
    assert both == ("phase2/migration",)


def test_cp_85_the_parts_of_the_source_are_all_there(profile: Profile) -> None:
    """CP-85: nine parts, each named by a script."""
    sources = " ".join(
        script.text.split("-- source: ")[1].splitlines()[0]
        for phase in profile.phases
        for script in profile.scripts(phase)
    )
    assert all(str(number) in sources for number in range(1, 10))


def test_cp_85_all_or_nothing(database: Database, profile: Profile) -> None:
    """CP-85: what cannot be applied to the end was never begun."""
    superuser = database.superuser()
    superuser.execute("create schema clinical authorization trunkline_owner")
    superuser.execute("create table clinical.metrics ()")
    with pytest.raises(TrunklineError):
        installer.install(database.dsn, profile)
    found = superuser.execute(
        "select relname from pg_class where relnamespace = 'clinical'::regnamespace"
    )
    assert found.fetchall() == [("metrics",)]


def test_the_profile_is_taken_back(clinic: Clinic) -> None:
    """CP-89: refused while jobs run; jobs and data stay; everything goes only when asked for."""
    job = clinic.start()
    dsn = clinic.database.dsn
    with pytest.raises(ProfileError, match="w1"):
        installer.rollback(dsn, PROFILE)
    assert clinic.complete(job)
    clinic.upload()
    assert installer.rollback(dsn, PROFILE) == ("drop_functions",)
    superuser = clinic.database.superuser()
    assert superuser.execute("select count(*) from clinical.shell_files").fetchone() == (1,)
    with pytest.raises(Exception, match="does not exist"):
        clinic.enqueue()
    installer.install(dsn, PROFILE, ["1", "2"])
    assert clinic.claim() is not None
    installer.rollback(dsn, PROFILE, purge=True, force=True)
    gone = superuser.execute("select to_regnamespace('clinical')").fetchone()
    assert gone == (None,)
    assert superuser.execute("select count(*) from trunkline.jobs").fetchone() == (7,)
    installer.install(dsn, PROFILE)
    assert clinic.row(clinic.enqueue()).status == "pending"


def test_the_profile_lives_under_another_name_as_well(database: Database, profile: Profile) -> None:
    """CP-85: in a schema of another name, where an upload goes in all the same."""
    installer.install(database.dsn, profile, ["1", "2"], schema="care")
    producer = database.connect("trunkline_producer")
    row = producer.execute("insert into care.user_profiles default values returning id").fetchone()
    assert row is not None
    made = producer.execute(
        "select job_id from care.submit_upload(%s, %s)", (row[0], f"{row[0]}/a.png")
    ).fetchone()
    assert made is not None
    worker = database.connect("trunkline_worker")
    claimed = worker.execute("select job_id from care.claim_next_job_v3('w')").fetchone()
    assert claimed == made
    assert database.superuser().execute("select to_regnamespace('clinical')").fetchone() == (None,)
