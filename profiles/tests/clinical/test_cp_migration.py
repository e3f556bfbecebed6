"""From the older tables: errors, files and jobs are taken over once, and nothing is dropped."""

from typing import Any

import psycopg
import pytest

from profiles.tests.clinical.conftest import PLAIN, Clinic
from trunkline.errors import TrunklineError
from trunkline.profiles import rollout
from trunkline_profiles.clinical import PROFILE

OLD = """
create schema old;
create table old.shell_files (
  id uuid primary key default gen_random_uuid(), patient_id uuid not null, filename text,
  processing_error text default ''
);
create table old.job_queue (
  id uuid primary key default gen_random_uuid(), job_type text not null, job_name text,
  job_payload jsonb, job_category text, priority integer, scheduled_at timestamptz,
  status text not null, worker_id text, started_at timestamptz, retry_count integer,
  max_retries integer, created_at timestamptz default clock_timestamp()
);
"""


@pytest.fixture
def older(clinic: Clinic) -> Clinic:
    """Beside tables of the older system, which belong to whoever installs."""
    clinic.database.connect().execute(OLD)
    return clinic


def take(clinic: Clinic, step: str, table: str, **options: Any) -> dict[str, Any]:
    return rollout.take_over(clinic.database.dsn, PROFILE, step, table, **options)


def old_job(clinic: Clinic, status: str, **facts: Any) -> Any:
    names = {"job_type": PLAIN, "job_payload": '{"a": 1}', "status": status} | facts
    columns = ", ".join(names)
    marks = ", ".join(["%s"] * len(names))
    row = (
        clinic.database.connect()
        .execute(
            f"insert into old.job_queue ({columns}) values ({marks}) returning id".encode(),
            list(names.values()),
        )
        .fetchone()
    )
    assert row is not None
    return row[0]


def imported(clinic: Clinic, old_id: Any) -> Any:
    (row,) = clinic.rows("select * from clinical.job_queue where old_id = %s", str(old_id))
    return row


def test_cp_s11_a_thousand_files_and_seven_running_jobs(older: Clinic) -> None:
    """CP-S11, CP-04, CP-05, CP-13, CP-15: twice; 500 objects, 500 nulls, 7 jobs with a lease."""
    owner = older.database.connect()
    owner.execute(
        "insert into old.shell_files (patient_id, processing_error) select %s,"
        " case when n <= 300 then null when n <= 500 then '' else 'error ' || n end"
        " from generate_series(1, 1000) as n",
        (older.patient,),
    )
    for number in range(7):
        old_job(older, "running", worker_id=f"old-{number}", started_at="2020-01-01")
    assert take(older, "errors", "old.shell_files") == {
        "total": 1000,
        "with_error": 500,
        "migrated": 500,
    }
    assert take(older, "jobs", "old.job_queue") == {"waiting": 0, "running": 7}
    look = (
        "select count(*), count(processing_error),"
        " count(*) filter (where processing_error ->> 'legacy_error' like 'error %'"
        " and (processing_error ->> 'migrated_at')::timestamptz <= clock_timestamp()),"
        " md5(string_agg(processing_error::text, ',' order by id)) from old.shell_files"
    )
    first = owner.execute(look.encode()).fetchone()
    assert first is not None
    assert first[:3] == (1000, 500, 500)
    assert take(older, "errors", "old.shell_files")["migrated"] == 0
    assert take(older, "jobs", "old.job_queue") == {"waiting": 0, "running": 0}
    assert owner.execute(look.encode()).fetchone() == first
    rows = older.rows("select * from clinical.job_queue")
    assert [row.status for row in rows] == ["processing"] * 7
    assert {row.worker_id for row in rows} == {f"old-{number}" for number in range(7)}
    assert all(row.started_at and row.heartbeat_at for row in rows)
    # Some of the lease has passed meanwhile, more on a busy machine.
    older.pass_time("270 seconds")
    assert older.rows("select * from trunkline.reclaim()") == []
    older.pass_time("31 seconds")
    assert len(older.rows("select * from trunkline.reclaim()")) == 7
    older.pass_time("61 seconds")
    assert older.claim() is not None


def test_cp_04_files_are_taken_over_with_their_errors(older: Clinic) -> None:
    """CP-04, CP-05: every row, once, with an audit event."""
    owner = older.database.connect()
    owner.execute(
        "insert into old.shell_files (patient_id, filename, processing_error) values"
        " (%(p)s, 'a', 'it broke'), (%(p)s, 'b', ''), (%(p)s, 'c', null)",
        {"p": older.patient},
    )
    take(older, "errors", "old.shell_files")
    assert take(older, "files", "old.shell_files") == {"files": 3}
    assert take(older, "files", "old.shell_files") == {"files": 0}
    found = {row.filename: row for row in older.rows("select * from clinical.shell_files")}
    assert found["a"].processing_error["legacy_error"] == "it broke"
    assert (found["b"].processing_error, found["c"].processing_error) == (None, None)
    (event,) = older.audit(found["a"].id, "shell_files")
    assert (event.action, event.patient_id) == ("INSERT", older.patient)
    legacy = older.database.superuser().execute(
        "select processing_error from clinical.legacy_shell_files order by filename"
    )
    assert legacy.fetchall() == [("it broke",), (None,), (None,)]


def test_cp_05_a_view_that_depends_on_the_column_stops_it(older: Clinic) -> None:
    """CP-05: loudly; the view is still there and so is every error."""
    owner = older.database.connect()
    owner.execute(
        "insert into old.shell_files (patient_id, processing_error) values (%s, 'x')",
        (older.patient,),
    )
    owner.execute("create view old.failed as select processing_error from old.shell_files")
    with pytest.raises(TrunklineError, match="depends on"):
        take(older, "errors", "old.shell_files")
    assert owner.execute("select * from old.failed").fetchall() == [("x",)]
    (result,) = older.rows("select * from clinical.rollout_results")
    assert (result.plan, result.step, result.outcome) == ("takeover", "errors", "refused")
    owner.execute("drop view old.failed")
    assert take(older, "errors", "old.shell_files")["migrated"] == 1


def test_cp_90_a_dry_run_of_a_take_over(older: Clinic) -> None:
    """CP-90: says what it would do, is on record, and leaves everything as it was."""
    owner = older.database.connect()
    owner.execute(
        "insert into old.shell_files (patient_id, processing_error) values (%s, 'x')",
        (older.patient,),
    )
    old_job(older, "pending")
    assert take(older, "errors", "old.shell_files", dry_run=True)["migrated"] == 1
    assert take(older, "jobs", "old.job_queue", dry_run=True) == {"waiting": 1, "running": 0}
    assert owner.execute("select processing_error from old.shell_files").fetchone() == ("x",)
    assert older.rows("select * from clinical.job_queue") == []
    results = older.rows("select outcome, dry_run from clinical.rollout_results")
    assert results == [("would_do", True)] * 2


@pytest.mark.parametrize("status", ["pending", "retrying", "deferred"])
def test_cp_14_old_waiting_jobs_can_be_claimed(older: Clinic, status: str) -> None:
    """CP-14, CP-96: shown by their old word until something happens, claimable when due."""
    old_id = old_job(older, status, retry_count=1, max_retries=3, priority=9, job_name="n")
    assert take(older, "jobs", "old.job_queue") == {"waiting": 1, "running": 0}
    row = imported(older, old_id)
    assert (row.status, row.priority, row.job_name) == (status, 9, "n")
    assert (row.retry_count, row.max_retries) == (1, 3)
    claimed = older.claim()
    assert (claimed.job_id, claimed.retry_count) == (row.id, 1)
    for _ in range(2):
        assert older.fail(row.id)
        older.pass_time("1 hour")
        assert older.claim().job_id == row.id
    assert older.fail(row.id)
    row = imported(older, old_id)
    assert (row.status, row.retry_count, row.max_retries) == ("failed", 3, 3)


def test_cp_15_a_running_job_always_has_a_lease(older: Clinic) -> None:
    """CP-15: also one without a worker or a start."""
    old_id = old_job(older, "running")
    take(older, "jobs", "old.job_queue")
    row = imported(older, old_id)
    assert (row.status, row.worker_id) == ("processing", "legacy")
    assert row.started_at == row.heartbeat_at
    older.pass_time("301 seconds")
    assert [r.job_id for r in older.rows("select * from trunkline.reclaim()")] == [row.id]


def test_what_is_over_stays_where_it_is(older: Clinic) -> None:
    """CP-13: ended jobs are history; an open one of an unknown type is named and nothing moves."""
    for status in ("completed", "failed", "cancelled"):
        old_job(older, status, job_type="gone_for_ever")
    assert take(older, "jobs", "old.job_queue") == {"waiting": 0, "running": 0}
    old_job(older, "pending")
    bad = old_job(older, "pending", job_type="unheard_of")
    with pytest.raises(TrunklineError, match="job_types"):
        take(older, "jobs", "old.job_queue")
    assert older.rows("select * from clinical.job_queue") == []
    (result,) = older.rows("select * from clinical.rollout_results where outcome = 'refused'")
    assert str(bad) in str(result.detail) or "job_types" in str(result.detail)


def test_cp_97_an_imported_job_has_the_patient_of_its_file(older: Clinic) -> None:
    """CP-97: by the file its payload names."""
    file = older.file
    old_id = old_job(
        older, "pending", job_type="ai_queue_pass1", job_payload=f'{{"shell_file_id": "{file}"}}'
    )
    take(older, "jobs", "old.job_queue")
    row = imported(older, old_id)
    assert row.patient_id == older.patient
    assert row.job_payload["estimated_tokens"] == 1000


@pytest.mark.parametrize(("step", "table"), [("errors", "old.nothing"), ("jobs", "no table")])
def test_a_table_that_is_not_there(older: Clinic, step: str, table: str) -> None:
    """CP-90: a refusal that says so."""
    with pytest.raises((TrunklineError, psycopg.Error)):
        take(older, step, table)
    assert older.rows("select * from clinical.job_queue") == []
