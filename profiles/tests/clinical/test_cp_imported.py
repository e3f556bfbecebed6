"""Jobs and files of the older tables once they are here: linked, run, rolled back like others."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from profiles.tests.clinical.conftest import AI, TYPES, Clinic
from profiles.tests.clinical.test_cp_migration import OLD, imported, old_job, take
from profiles.tests.clinical.test_cp_rollout import list_legacy, step
from trunkline.errors import TrunklineError

LIMIT = "openai/gpt-4o-mini"


@pytest.fixture
def older(clinic: Clinic) -> Clinic:
    """Beside tables of the older system, which belong to whoever installs."""
    clinic.database.connect().execute(OLD)
    return clinic


def old_files(clinic: Clinic, count: int, error: str | None = None) -> list[UUID]:
    rows = clinic.database.connect().execute(
        "insert into old.shell_files (patient_id, filename, processing_error)"
        " select %s, 'f', %s from generate_series(1, %s) returning id",
        (clinic.patient, error, count),
    )
    return [row[0] for row in rows]


def old_stage(clinic: Clinic, file: UUID, kind: str, status: str = "pending", **facts: Any) -> Any:
    payload = f'{{"shell_file_id": "{file}"}}'
    return old_job(clinic, status, job_type=kind, job_payload=payload, **facts)


def take_all(clinic: Clinic) -> dict[str, Any]:
    take(clinic, "errors", "old.shell_files")
    take(clinic, "files", "old.shell_files")
    return take(clinic, "jobs", "old.job_queue")


def the_file(clinic: Clinic, file: UUID) -> Any:
    (row,) = clinic.rows("select * from clinical.shell_files where id = %s", file)
    return row


@pytest.mark.parametrize("status", ["active", "maintenance"])
def test_cp_15_what_ran_runs_past_the_limits(older: Clinic, status: str) -> None:
    """CP-15: more than may run at once, also of a closed endpoint: each has a lease that ends."""
    older.operator.connection.execute(
        "update clinical.api_rate_limits set status = %s where api_endpoint = 'gpt-4o-mini'",
        (status,),
    )
    before = older.limit()
    for number, file in enumerate(old_files(older, 60)):
        old_stage(older, file, AI, "running", worker_id=f"old-{number}")
    assert take_all(older) == {"waiting": 0, "running": 60}
    rows = older.rows("select * from clinical.job_queue where old_id is not null")
    assert {(row.status, row.attempt) for row in rows} == {("processing", 1)}
    assert {row.worker_id for row in rows} == {f"old-{number}" for number in range(60)}
    # They are charged, and the limits are as they were.
    after = older.limit()
    assert (after.active_requests, after.current_requests_minute) == (60, 60)
    settings = ("status", "requests_per_minute", "tokens_per_minute", "concurrent_requests")
    assert [getattr(after, name) for name in settings] == [
        getattr(before, name) for name in settings
    ]
    older.enqueue(AI)
    assert older.claim() is None
    older.pass_time("301 seconds")
    assert len(older.rows("select * from trunkline.reclaim(p_limit => 100)")) == 60


def test_cp_15_a_job_that_cannot_run_is_shown_as_waiting(older: Clinic) -> None:
    """CP-15: while claims are off nothing runs, and nothing is said to."""
    older.configure("worker.claims_enabled", "false")
    old_id = old_stage(older, old_files(older, 1)[0], AI, "running", worker_id="old")
    assert take_all(older) == {"waiting": 1, "running": 0}
    row = imported(older, old_id)
    assert (row.status, row.worker_id) == ("pending", None)
    older.configure("worker.claims_enabled", "true")
    assert older.claim().job_id == row.id


def test_cp_25_more_jobs_than_may_wait_are_taken_over(older: Clinic) -> None:
    """CP-25, CP-08: a full lane refuses no job that the older system had taken."""
    older.operator.connection.execute("update clinical.api_rate_limits set queue_depth_limit = 1")
    for file in old_files(older, 3):
        old_stage(older, file, AI)
    assert take_all(older) == {"waiting": 3, "running": 0}
    # They follow each other to the end.
    for stage in TYPES[3:6]:
        for _ in range(3):
            row = older.claim()
            assert (row.job_type, row.job_payload["endpoint"]) == (stage, LIMIT)
            assert older.complete(row.job_id)
    assert older.rows("select from clinical.shell_files where completed_at is null") == []


def test_cp_106_one_job_of_a_file_carries_its_pipeline_on(older: Clinic) -> None:
    """CP-106: the furthest; the others end by themselves."""
    (file,) = old_files(older, 1)
    first = old_stage(older, file, "ai_queue_pass1")
    last = old_stage(older, file, "ai_queue_pass3")
    take_all(older)
    row = imported(older, last)
    assert the_file(older, file).job_id == row.id
    assert older.audit(file, "shell_files")[-1].job_id == row.id
    assert row.correlation_id == imported(older, first).correlation_id == str(file)
    for _ in range(2):
        assert older.complete(older.claim().job_id)
    assert older.claim() is None
    assert the_file(older, file).completed_at


def test_cp_106_what_is_taken_over_is_a_workflow(older: Clinic) -> None:
    """CP-106, CP-08: the stage and those behind it; no closed queue or full lane refuses it."""
    files = old_files(older, 2)
    later = older.operator.clock() + timedelta(hours=1)
    waiting = old_stage(
        older,
        files[0],
        AI,
        "retrying",
        scheduled_at=later,
        priority=9,
        job_name="scan",
        retry_count=2,
        max_retries=3,
    )
    running = old_stage(older, files[1], TYPES[1], "running", worker_id="old")
    older.operator.connection.execute(
        "update clinical.api_rate_limits set queue_depth_limit = 1;"
        "select trunkline.pause_queue('clinical', 'x', true)"
    )
    assert take_all(older) == {"waiting": 1, "running": 1}
    older.operator.connection.execute("select trunkline.resume_queue('clinical')")
    look = (
        "select s.name from clinical.shell_files as f"
        " join trunkline.workflow_steps as s on s.workflow_id = f.workflow_id"
        " where f.id = %s order by s.place"
    )
    for file, stages in zip(files, (TYPES[3:6], TYPES[1:6]), strict=True):
        assert [row.name for row in older.rows(look, file)] == ["taken over", *stages]
    row = imported(older, waiting)
    assert abs(row.scheduled_at - later) < timedelta(seconds=5)
    assert (row.status, row.priority, row.job_name) == ("retrying", 9, "scan")
    assert (row.retry_count, row.max_retries) == (2, 3)
    assert row.job_payload["shell_file_id"] == str(files[0])
    rest = older.rows(
        "select * from clinical.job_queue where workflow_id = %s and old_id is null",
        row.workflow_id,
    )
    assert {(job.priority, job.job_name, job.status, job.waiting_reason) for job in rest} == {
        (9, "scan", "pending", "dependency")
    }
    assert older.complete(imported(older, running).id, "old")
    assert older.claim("w1", *TYPES[3:6]) is None
    assert older.claim("w1").job_type == TYPES[2]
    older.pass_time("1 hour")
    for stage in TYPES[3:6]:
        claimed = older.claim("w1", stage)
        assert claimed.job_type == stage
        assert older.complete(claimed.job_id)
    assert the_file(older, files[0]).completed_at


def test_cp_97_a_job_without_its_file_is_named(older: Clinic) -> None:
    """CP-97: it would belong to nobody; files come first, and nothing moves before."""
    (file,) = old_files(older, 1)
    old_id = old_stage(older, file, AI)
    with pytest.raises(TrunklineError, match="take files over first"):
        take(older, "jobs", "old.job_queue")
    assert older.rows("select * from clinical.job_queue") == []
    take_all(older)
    assert imported(older, old_id).patient_id == older.patient


def test_cp_s12_the_roll_back_of_what_was_taken_over(older: Clinic) -> None:
    """CP-S12, CP-89: 25 in flight, some waiting, some over: claimable again, no upload missing."""
    files = old_files(older, 34)
    for number, file in enumerate(files[:25]):
        kind = TYPES[number % 6]
        old_stage(older, file, kind, "running", worker_id=f"old-{number % 3}")
    for file in files[25:30]:
        old_stage(older, file, AI, "retrying", retry_count=1, max_retries=3)
    for file, status in zip(
        files[30:], ("completed", "completed", "failed", "cancelled"), strict=True
    ):
        old_stage(older, file, "ai_queue_pass3", status)
    old_files(older, 1, "it broke")
    assert take_all(older) == {"waiting": 5, "running": 25}
    list_legacy(older)
    for name in ("enqueue_off", "claims_off", "workers_zero"):
        assert step(older, "rollback", name).outcome == "done", name
    assert step(older, "rollback", "return_jobs").detail["changed"] == 25
    rows = older.rows("select * from clinical.job_queue where old_id is not null")
    assert {row.status for row in rows} == {"pending", "retrying"}
    assert [row.retry_count for row in rows if row.status == "pending"] == [0] * 25
    assert step(older, "rollback", "legacy_views").outcome == "done"
    assert step(older, "rollback", "restore_legacy", evidence="tag v2").outcome == "done"
    result = step(older, "rollback", "verify")
    assert (result.outcome, result.detail["uploads"]) == ("done", 35)
    # One that has neither a job nor an end is what the step is there for.
    (lost,) = old_files(older, 1)
    take(older, "files", "old.shell_files")
    refused = step(older, "rollback", "verify")
    assert (refused.outcome, refused.detail["problems"]) == ("refused", [str(lost)])


def test_cp_60_a_roll_back_gives_no_tokens_back(clinic: Clinic) -> None:
    """CP-60, CP-89: how far a job came is unknown, so its estimate stays; no attempt is counted."""
    job = clinic.start(AI, payload={"estimated_tokens": 700})
    assert step(clinic, "rollback", "return_jobs").detail["changed"] == 1
    row = clinic.row(job)
    assert (row.status, row.retry_count, row.deferrals) == ("pending", 0, 0)
    limit = clinic.limit()
    assert (limit.active_requests, limit.current_requests_minute) == (0, 1)
    assert limit.current_tokens_minute == 700
    assert clinic.claim().job_id == job
    assert clinic.limit().current_tokens_minute == 1400
