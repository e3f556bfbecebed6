"""Uploads: a file and its first job, both or neither, once for a key, for those with access."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from profiles.tests.clinical.conftest import AI, TYPES, Clinic
from tests.support.databases import Database

COLUMNS = {
    "id": ("uuid", True),
    "patient_id": ("uuid", True),
    "processing_error": ("jsonb", False),
    "idempotency_key": ("text", False),
}


# What turns a new request away, by the code of the refusal.
CLOSED = {
    "limit_queue_full": "update clinical.api_rate_limits set queue_depth_limit = 1",
    "quota_spent": "select trunkline.set_limit('openai/gpt-4o-mini',"
    """ '{"quota": 0, "quota_unit": "requests", "quota_window": "1 hour"}')""",
    "queue_full": "select trunkline.limit_queue('clinical', 1)",
    "queue_paused": "select trunkline.pause_queue('clinical', 'x', true)",
}


def finish(clinic: Clinic, result: Any = None, *kinds: str) -> str:
    """The stage that is next, of these types, claimed and completed."""
    row = clinic.claim("w1", *kinds)
    assert clinic.complete(row.job_id, result=result)
    name: str = row.job_type
    return name


def test_cp_01_the_table_of_files(clinic: Clinic) -> None:
    """CP-01: columns, random ids, and files go with their patient."""
    found = {
        row.attname: (row.type, row.attnotnull)
        for row in clinic.rows(
            "select a.attname, format_type(a.atttypid, null) as type, a.attnotnull"
            " from pg_attribute as a"
            " where a.attrelid = 'clinical.shell_files'::regclass and a.attnum > 0"
        )
    }
    assert {name: found[name] for name in COLUMNS} == COLUMNS
    made = clinic.upload()
    clinic.producer.connection.execute(
        "delete from clinical.user_profiles where id = %s", (clinic.patient,)
    )
    assert clinic.rows("select * from clinical.shell_files") == []
    removed = clinic.audit(made.file_id, "shell_files")[-1]
    assert (removed.action, removed.patient_id) == ("DELETE", clinic.patient)


def test_cp_02_a_key_belongs_to_its_patient(clinic: Clinic) -> None:
    """CP-02, CP-03: unique for one patient; another's is another; null is no key."""
    first = clinic.upload(key="k")
    assert clinic.upload(key="k") == first
    other = clinic.admit()
    assert clinic.upload(other, key="k").file_id != first.file_id
    assert clinic.upload().file_id != clinic.upload().file_id
    assert clinic.operator.value("select count(*) from clinical.shell_files") == 4


def test_cp_03_a_repeated_submission_makes_nothing(clinic: Clinic) -> None:
    """CP-03: the same file and job, no second row, job or event, also when the job is over."""
    first = clinic.upload(key="k")
    finish(clinic)
    assert clinic.upload(key="k", path="other.png") == first
    assert len(clinic.audit(first.file_id, "shell_files")) == 1
    jobs = clinic.rows("select id from clinical.job_queue where job_type = %s", TYPES[0])
    assert [row.id for row in jobs] == [first.job_id]


def test_cp_s10_ten_at_once(clinic: Clinic, database: Database) -> None:
    """CP-S10, CP-03: one file, one first job, one INSERT event of each, ten equal answers."""
    path = f"{clinic.patient}/scan.png"

    def submit(_: int) -> tuple[Any, ...]:
        connection = database.connect("trunkline_producer")
        found = connection.execute(
            "select * from clinical.submit_upload(%s, %s, '{}', 'same')", (clinic.patient, path)
        ).fetchone()
        assert found is not None
        return found

    with ThreadPoolExecutor(10) as pool:
        answers = set(pool.map(submit, range(10)))
    ((file, job),) = answers
    assert clinic.operator.value("select count(*) from clinical.shell_files") == 1
    assert clinic.operator.value("select count(*) from trunkline.workflows") == 1
    jobs = clinic.rows("select * from clinical.job_queue")
    assert [row.id for row in jobs if row.job_type == TYPES[0]] == [job]
    assert sorted(row.job_type for row in jobs) == sorted(TYPES[:6])
    events = clinic.rows("select * from clinical.audit_log where action = 'INSERT'")
    assert sorted((e.table_name, e.record_id) for e in events) == sorted(
        [("shell_files", str(file)), *(("job_queue", str(row.id)) for row in jobs)]
    )


def test_cp_08_the_file_and_its_job_are_one(clinic: Clinic) -> None:
    """CP-08: one transaction; without workers or providers the upload waits and is not lost."""
    with clinic.producer.connection.transaction(force_rollback=True):
        clinic.upload()
    assert clinic.rows("select id from clinical.shell_files") == []
    assert clinic.rows("select id from clinical.job_queue") == []
    assert clinic.rows("select workflow_id from trunkline.workflows") == []
    clinic.operator.connection.execute("update clinical.api_rate_limits set status = 'disabled'")
    made = clinic.upload()
    clinic.pass_time("3 days")
    assert clinic.row(made.job_id).status == "pending"
    assert clinic.claim().job_id == made.job_id


def test_cp_08_no_file_without_its_job(clinic: Clinic) -> None:
    """CP-08: where the job cannot be made there is no file either."""
    clinic.operator.connection.execute("select trunkline.pause_queue('clinical', 'x', true)")
    with pytest.raises(psycopg.Error, match="paused"):
        clinic.upload()
    assert clinic.rows("select id from clinical.shell_files") == []


@pytest.mark.parametrize("closed", CLOSED)
def test_cp_08_what_was_accepted_waits(clinic: Clinic, closed: str) -> None:
    """CP-08, CP-25, CP-106: a next stage is never refused, also where a new request is."""
    made = [clinic.upload() for _ in range(3)]
    started = [clinic.claim(f"w{n}", "fast_queue_spatial") for n in range(3)]
    assert started == [None] * 3
    for stage in TYPES[:2]:
        assert [finish(clinic, None, stage) for _ in made] == [stage] * 3
    running = [clinic.claim() for _ in made]
    assert {row.job_type for row in running} == {TYPES[2]}
    clinic.enqueue(AI, {"shell_file_id": str(made[0].file_id)})
    clinic.operator.connection.execute(CLOSED[closed].encode())
    with pytest.raises(psycopg.Error) as refused:
        clinic.enqueue(AI, {"shell_file_id": str(made[0].file_id)})
    assert f'"{closed}"' in str(refused.value.diag.message_detail)
    # By the call of other workers and by those of ours.
    assert clinic.complete(running[0].job_id)
    for row in running[1:]:
        with clinic.worker.connection.transaction():
            assert clinic.worker.value(
                "select clinical.finish_stage(%s, %s, 'w1')", row.job_id, row.attempt
            )
            clinic.worker.value(
                "select trunkline.complete('w1', %s, %s)", [row.job_id], [row.attempt]
            )
    waiting = clinic.rows(
        "select * from clinical.job_queue where job_type = %s and correlation_id = any (%s)",
        *(AI, [str(one.file_id) for one in made]),
    )
    assert {(row.status, row.retry_count) for row in waiting} == {("pending", 0)}
    # Their turn has come: none of them waits for a stage.
    assert [row.waiting_reason for row in waiting] == [None] * 4


@pytest.mark.parametrize("closed", CLOSED)
def test_cp_08_an_upload_is_refused_only_where_its_first_stage_is(
    clinic: Clinic, closed: str
) -> None:
    """CP-08, CP-25: a provider that falls behind turns no upload away; a closed queue does."""
    clinic.enqueue(AI)
    clinic.operator.connection.execute(CLOSED[closed].encode())
    if closed.startswith("queue"):
        with pytest.raises(psycopg.Error) as refused:
            clinic.upload()
        assert f'"{closed}"' in str(refused.value.diag.message_detail)
        return
    made = clinic.upload()
    assert [finish(clinic, None, stage) for stage in TYPES[:3]] == list(TYPES[:3])
    (row,) = clinic.rows(
        "select * from clinical.job_queue where job_type = %s and correlation_id = %s",
        *(AI, str(made.file_id)),
    )
    assert (row.status, row.waiting_reason) == ("pending", None)


@pytest.mark.parametrize(
    "path",
    [
        "{other}/scan.png",
        "{patient}/{other}/scan.png",
        "scan.png",
        "{patient}/../x/scan.png",
        "/{patient}/scan.png",
        "{patient}",
        "{patient}x/scan.png",
        "{patient}/./a",
        "{patient}/{user}.png",
    ],
)
def test_cp_07_a_file_lies_in_the_folder_of_its_patient(clinic: Clinic, path: str) -> None:
    """CP-07: no path leads elsewhere or has the id of anybody else."""
    user = uuid4()
    clinic.producer.connection.execute(
        "insert into clinical.profile_access (user_id, patient_id) values (%s, %s)",
        (user, clinic.patient),
    )
    bad = path.format(patient=clinic.patient, other=clinic.admit(), user=user)
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP011"):
        clinic.producer.value("select clinical.submit_upload(%s, %s)", clinic.patient, bad)
    assert clinic.rows("select id from clinical.shell_files") == []
    # A page of an unrelated id is nobody's.
    assert clinic.upload(path=f"{uuid4()}.png").file_id


def test_cp_106_stages_follow_each_other(clinic: Clinic) -> None:
    """CP-106, CP-09, CP-79: all are stored, one can be claimed; each end opens the next one."""
    made = clinic.upload()
    for place, stage in enumerate(TYPES[:6]):
        rows = clinic.rows("select * from clinical.job_queue order by id")
        assert [row.job_type for row in rows] == list(TYPES[:6])
        assert [row.status for row in rows] == ["completed"] * place + ["pending"] * (6 - place)
        assert [row.waiting_reason for row in rows[place:]] == [None] + ["dependency"] * (5 - place)
        assert {row.patient_id for row in rows} == {clinic.patient}
        assert {row.correlation_id for row in rows} == {str(made.file_id)}
        assert finish(clinic, {"next_payload": {"from": stage}}) == stage
    assert clinic.claim() is None
    (file,) = clinic.rows("select * from clinical.shell_files")
    assert file.completed_at is not None
    last = clinic.rows("select * from clinical.job_queue where job_type = %s", TYPES[5])[0]
    assert last.job_payload["from"] == TYPES[4]
    assert clinic.audit(made.file_id, "shell_files")[-1].reason == "pipeline completed"


@pytest.mark.parametrize(
    ("off", "stages"),
    [(("2",), (0, 1, 2, 3, 5)), (("3",), (0, 1, 2, 3, 4)), (("2", "3"), (0, 1, 2, 3))],
)
def test_cp_106_later_passes_are_optional(
    clinic: Clinic, off: tuple[str, ...], stages: tuple[int, ...]
) -> None:
    """CP-106: by configuration, at the time of the upload."""
    for number in off:
        clinic.configure(f"pipeline.pass{number}_enabled", "false")
    clinic.upload()
    assert [finish(clinic) for _ in stages] == [TYPES[place] for place in stages]
    assert clinic.claim() is None
    assert clinic.rows("select * from clinical.shell_files")[0].completed_at is not None


def test_cp_106_a_stage_waits_for_the_one_before(clinic: Clinic) -> None:
    """CP-106: a stage that fails opens no next one; its retry does, once."""
    made = clinic.upload()
    assert clinic.claim().job_id == made.job_id
    assert clinic.fail(made.job_id)
    assert clinic.claim() is None
    clinic.pass_time("1 minute")
    assert finish(clinic) == TYPES[0]
    assert not clinic.complete(made.job_id)
    assert finish(clinic) == TYPES[1]
    assert len(clinic.rows("select id from clinical.job_queue")) == 6


def test_cp_106_finish_stage_belongs_to_the_engines_completion(clinic: Clinic) -> None:
    """CP-106: for our own workers; refused from a stale attempt, undone with its transaction."""
    made = clinic.upload()
    claimed = clinic.claim("w1")
    call = "select clinical.finish_stage(%s, %s, %s, '{}')"
    for attempt, worker in ((2, "w1"), (1, "w2"), (None, "w1")):
        with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP015"):
            clinic.worker.value(call, made.job_id, attempt, worker)
    with clinic.worker.connection.transaction(force_rollback=True):
        assert clinic.worker.value(call, made.job_id, 1, "w1")
        clinic.worker.value("select trunkline.complete('w1', %s, '{1}')", [made.job_id])
    assert clinic.claim("w2") is None
    with clinic.worker.connection.transaction():
        following = clinic.worker.value(call, made.job_id, claimed.attempt, "w1")
        clinic.worker.value("select trunkline.complete('w1', %s, '{1}')", [made.job_id])
    assert clinic.row(following).job_type == TYPES[1]
    assert clinic.row(made.job_id).status == "completed"
    assert clinic.claim("w2").job_id == following


def test_cp_106_another_result_of_the_same_stage_brings_no_second_next_stage(
    clinic: Clinic,
) -> None:
    """CP-106: a later attempt may report another result; the one that completed counts."""
    made = clinic.upload()

    def report(attempt: int, pages: int) -> UUID:
        following: UUID = clinic.worker.value(
            "select clinical.finish_stage(%s, %s, 'w1', %s::jsonb)",
            *(made.job_id, attempt, f'{{"next_payload": {{"pages": {pages}}}}}'),
        )
        return following

    assert clinic.claim("w1").job_id == made.job_id
    following = report(1, 3)
    assert report(1, 4) == following
    assert clinic.fail(made.job_id)
    # What was only reported opens nothing.
    assert clinic.claim("w1") is None
    clinic.pass_time("1 minute")
    assert clinic.claim("w1").job_id == made.job_id
    assert report(2, 5) == following
    assert clinic.complete(made.job_id, result={"next_payload": {"pages": 5}})
    claimed = clinic.claim("w1")
    assert (claimed.job_id, claimed.job_payload["pages"]) == (following, 5)
    assert clinic.row(following).job_payload == claimed.job_payload
    assert len(clinic.rows("select id from clinical.job_queue")) == 6


def test_a_separate_job_starts_no_pipeline(clinic: Clinic) -> None:
    """CP-106: what enqueue_job_v3 made about a file ends where it ends."""
    job = clinic.start("fast_queue_ocr")
    assert clinic.complete(job)
    assert clinic.claim() is None


def test_a_stopped_pipeline_leaves_its_error_at_the_file(clinic: Clinic) -> None:
    """CP-01: processing_error is an object; a requeued job that completes goes on from there."""
    made = clinic.upload()
    clinic.claim()
    assert clinic.fail(made.job_id, error={"type": "Infected", "message": "found"}, retryable=False)
    # In the transaction of the end, so no task has to look for it.
    (file,) = clinic.rows("select * from clinical.shell_files")
    assert file.processing_error["error_type"] == "Infected"
    assert file.processing_error["job_id"] == str(made.job_id)
    assert clinic.worker.value("select clinical.note_stopped_files()") == 0
    clinic.operator.value("select clinical.requeue_dead_letter(%s)", made.job_id)
    assert [finish(clinic) for _ in range(6)] == list(TYPES[:6])
    (file,) = clinic.rows("select * from clinical.shell_files")
    assert (file.processing_error, file.completed_at is None) == (None, False)


def test_a_stage_that_dies_without_a_call_is_found(clinic: Clinic) -> None:
    """CP-01, CP-34: nobody calls fail_job for a lost job; system_maintenance records it, once."""
    made = clinic.upload()
    for _ in range(4):
        clinic.pass_time("1 hour")
        assert clinic.claim().job_id == made.job_id
        clinic.pass_time("301 seconds")
        clinic.rows("select * from trunkline.reclaim()")
    assert clinic.row(made.job_id).status == "failed"
    assert [clinic.worker.value("select clinical.note_stopped_files()") for _ in "12"] == [1, 0]
    (file,) = clinic.rows("select * from clinical.shell_files")
    reason = "exceeded_max_retries_after_timeout"
    assert file.processing_error["dead_letter_reason"] == reason


def test_cp_65_maintenance_stops_uploads_if_so_configured(clinic: Clinic, nobody: UUID) -> None:
    """CP-65, CP-79: and a patient that does not exist is denied like one without access."""
    clinic.configure("maintenance.mode", "true")
    assert clinic.upload().file_id
    clinic.configure("maintenance.stop_uploads", "true")
    with pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == "CP006"):
        clinic.upload()
    clinic.configure("maintenance.mode", "false")
    assert clinic.upload().file_id
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        clinic.upload(nobody)
