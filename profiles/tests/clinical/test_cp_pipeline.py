"""The pipeline of a file is one workflow of the engine: stored at once, stopped, retried, rerun."""

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.clinical.conftest import AI, TYPES, Clinic, sign_in
from profiles.tests.clinical.test_cp_duties import user_of
from profiles.tests.clinical.test_cp_files import finish
from tests.support.databases import Database

STAGES = list(TYPES[:6])


def the_file(clinic: Clinic, file: UUID) -> Any:
    (row,) = clinic.rows("select * from clinical.shell_files where id = %s", file)
    return row


def workflow(clinic: Clinic, file: UUID) -> Any:
    """The workflow of a file, as operators see it."""
    (row,) = clinic.rows(
        "select * from trunkline.workflows where workflow_id = %s",
        the_file(clinic, file).workflow_id,
    )
    return row


def steps(clinic: Clinic, file: UUID) -> list[Any]:
    return clinic.rows(
        "select * from trunkline.workflow_steps where workflow_id = %s order by place",
        the_file(clinic, file).workflow_id,
    )


def jobs(clinic: Clinic, file: UUID) -> list[Any]:
    """The jobs of a file's pipeline in the order of its stages."""
    return clinic.rows(
        "select * from clinical.job_queue where workflow_id = %s order by id",
        the_file(clinic, file).workflow_id,
    )


def die(clinic: Clinic, job: UUID) -> None:
    assert clinic.fail(job, error={"type": "Torn", "message": "page 2 is torn"}, retryable=False)


def test_cp_106_an_upload_stores_its_workflow(clinic: Clinic, database: Database) -> None:
    """CP-106, CP-08: file, workflow and all jobs in one transaction, which others see at once."""
    other = Clinic(database)
    with clinic.producer.connection.transaction():
        made = clinic.upload()
        assert other.rows("select * from clinical.shell_files") == []
        assert other.rows("select * from trunkline.workflows") == []
        assert other.rows("select * from clinical.job_queue") == []
    found = workflow(other, made.file_id)
    assert (found.name, found.state, found.jobs) == ("clinical_upload", "queued", 6)
    assert (found.tenant, found.correlation_id) == (str(clinic.patient), str(made.file_id))
    assert [(step.name, step.after) for step in steps(clinic, made.file_id)] == [
        (stage, STAGES[place - 1 : place] or None) for place, stage in enumerate(STAGES)
    ]
    rows = jobs(clinic, made.file_id)
    assert [row.job_type for row in rows] == STAGES
    assert rows[0].id == made.job_id
    # Every job is on record from its first moment (CP-26, CP-97).
    for row in rows:
        (event,) = clinic.audit(row.id)
        assert (event.action, event.patient_id) == ("INSERT", clinic.patient)
        assert row.job_payload.keys() - {"endpoint"} == {"shell_file_id", "estimated_tokens"}


def test_cp_79_a_user_starts_the_workflow_of_its_patient(platform: Database) -> None:
    """CP-79: with no right on jobs or workflows, and for this patient alone."""
    clinic = Clinic(platform)
    client = sign_in(platform, user_of(clinic))
    path = f"{clinic.patient}/a.png"
    query = "select file_id from clinical.submit_upload(%s, %s)"
    row = client.execute(query, (clinic.patient, path)).fetchone()
    assert row is not None
    assert workflow(clinic, row[0]).tenant == str(clinic.patient)
    assert [job.job_type for job in jobs(clinic, row[0])] == STAGES
    for query in ("select * from clinical.job_queue", "select * from trunkline.workflows"):
        with pytest.raises(psycopg.Error, match="permission denied"):
            client.execute(query.encode())


def test_cp_106_a_completed_stage_opens_the_next_one(clinic: Clinic) -> None:
    """CP-106, CP-28: what was not opened is not claimed, by its type or by any."""
    made = clinic.upload()
    for place, stage in enumerate(STAGES):
        assert clinic.claim("w2", *STAGES[place + 1 :], *STAGES[:place]) is None
        claimed = clinic.claim("w1")
        assert (claimed.job_type, claimed.job_payload["shell_file_id"]) == (
            stage,
            str(made.file_id),
        )
        assert clinic.claim("w2") is None
        assert workflow(clinic, made.file_id).state == "running"
        assert clinic.complete(claimed.job_id)
    assert workflow(clinic, made.file_id).state == "completed"
    assert the_file(clinic, made.file_id).completed_at is not None


def test_cp_106_a_dead_stage_cancels_those_behind_it(clinic: Clinic) -> None:
    """CP-106, CP-49: with the reason; a requeue takes them back and the rest completes."""
    made = clinic.upload()
    assert [finish(clinic) for _ in range(2)] == STAGES[:2]
    dead = clinic.claim()
    die(clinic, dead.job_id)
    rows = jobs(clinic, made.file_id)
    assert [row.status for row in rows] == [*["completed"] * 2, "failed", *["cancelled"] * 3]
    for row in rows[3:]:
        assert clinic.audit(row.id)[-1].reason == "job cancelled: dependency"
    assert workflow(clinic, made.file_id).state == "failed"
    file = the_file(clinic, made.file_id)
    assert file.processing_error["message"] == "page 2 is torn"
    assert file.processing_error["job_type"] == STAGES[2]
    assert file.completed_at is None
    assert clinic.claim() is None
    clinic.operator.value("select clinical.requeue_dead_letter(%s)", dead.job_id)
    assert workflow(clinic, made.file_id).state == "running"
    assert [finish(clinic) for _ in range(4)] == STAGES[2:]
    # Under their ids, and what was done is not done again.
    again = jobs(clinic, made.file_id)
    assert [(row.id, row.status) for row in again] == [(row.id, "completed") for row in rows]
    file = the_file(clinic, made.file_id)
    assert (file.processing_error, file.completed_at is None) == (None, False)
    found = workflow(clinic, made.file_id)
    assert (found.state, found.generation) == ("completed", 2)


def test_cp_106_operators_have_the_verbs_of_workflows(clinic: Clinic) -> None:
    """CP-49, CP-106: a retry of the whole; one that dies again replaces the error at the file."""
    made = clinic.upload()
    retry = "select outcome from trunkline.retry_workflow(%s)"
    for message in ("first", "second"):
        row = clinic.claim()
        assert row.job_id == made.job_id
        assert clinic.fail(row.job_id, error={"message": message}, retryable=False)
        file = the_file(clinic, made.file_id)
        assert file.processing_error["message"] == message
        assert clinic.operator.value(retry, file.workflow_id) == "retried"
    assert [finish(clinic) for _ in STAGES] == STAGES
    assert the_file(clinic, made.file_id).completed_at is not None


def test_cp_106_a_rerun_ends_the_same_file(clinic: Clinic) -> None:
    """CP-106: a new workflow that refers to the old one is about its file, and about no other."""
    made = clinic.upload()
    assert finish(clinic) == STAGES[0]
    die(clinic, clinic.claim().job_id)
    again = "select workflow_id from trunkline.rerun_workflow(%s)"
    assert clinic.operator.value(again, the_file(clinic, made.file_id).workflow_id)
    assert [finish(clinic) for _ in STAGES[1:]] == STAGES[1:]
    file = the_file(clinic, made.file_id)
    assert (file.processing_error, file.completed_at is None) == (None, False)


def test_cp_106_a_completion_past_the_profile_counts(clinic: Clinic) -> None:
    """CP-01, CP-106: by the engine's own call, without finish_stage; a chore finds it."""
    for number in ("2", "3"):
        clinic.configure(f"pipeline.pass{number}_enabled", "false")
    made = clinic.upload()
    assert [finish(clinic) for _ in range(3)] == STAGES[:3]
    last = clinic.claim()
    clinic.worker.value("select trunkline.complete('w1', %s, '{1}')", [last.job_id])
    assert workflow(clinic, made.file_id).state == "completed"
    assert [clinic.worker.value("select clinical.note_stopped_files()") for _ in "12"] == [1, 0]
    file = the_file(clinic, made.file_id)
    assert (file.processing_error, file.completed_at is None) == (None, False)


@pytest.mark.parametrize(
    ("off", "missing"),
    [
        (["pipeline.pass2_enabled"], ["ai_queue_pass2"]),
        (
            ["pipeline.pass2_enabled", "pipeline.pass3_enabled"],
            ["ai_queue_pass2", "ai_queue_pass3"],
        ),
        (["ai_queue_pass3"], ["ai_queue_pass3"]),
    ],
)
def test_cp_106_stages_that_are_off_are_not_in_the_workflow(
    clinic: Clinic, off: list[str], missing: list[str]
) -> None:
    """CP-106: by configuration or as inactive types; what was uploaded before keeps its stages."""
    before = clinic.upload()
    for name in off:
        if name in TYPES:
            change = "update clinical.job_types set is_active = false where job_type = %s"
            clinic.operator.connection.execute(change, (name,))
        else:
            clinic.configure(name, "false")
    made = clinic.upload()
    left = [stage for stage in STAGES if stage not in missing]
    assert [row.job_type for row in jobs(clinic, made.file_id)] == left
    assert [step.after for step in steps(clinic, made.file_id)][1:] == [[one] for one in left[:-1]]
    done = []
    while (claimed := clinic.claim()) is not None:
        assert clinic.complete(claimed.job_id)
        done.append(claimed.job_type)
    assert sorted(done) == sorted(STAGES + left)
    for one in (before, made):
        assert the_file(clinic, one.file_id).completed_at is not None


def test_cp_106_an_order_that_goes_in_circles_ends(clinic: Clinic) -> None:
    """CP-106: every stage is in the pipeline once, whatever next_stage says."""
    clinic.operator.connection.execute(
        "update clinical.job_types set next_stage = 'fast_queue_ocr' where job_type = %s",
        ("ai_queue_pass3",),
    )
    made = clinic.upload()
    assert [row.job_type for row in jobs(clinic, made.file_id)] == STAGES


def test_cp_106_a_new_type_can_be_a_stage(clinic: Clinic) -> None:
    """CP-11, CP-106: the registry alone says what the stages are, with their endpoints."""
    clinic.operator.connection.execute(
        "insert into clinical.job_types"
        " (job_type, provider_name, api_endpoint, next_stage, needs_file)"
        " values ('lab_values', 'anthropic', 'claude-3', 'ai_queue_pass2', true);"
        "update clinical.job_types set next_stage = 'lab_values' where job_type = 'ai_queue_pass1'"
    )
    made = clinic.upload()
    rows = jobs(clinic, made.file_id)
    assert [row.job_type for row in rows] == [*STAGES[:4], "lab_values", *STAGES[4:]]
    assert rows[4].job_payload["endpoint"] == "anthropic/claude-3"
    assert [finish(clinic) for _ in rows[:4]] == STAGES[:4]
    assert clinic.claim().job_type == "lab_values"
    assert clinic.limit("anthropic/claude-3").active_requests == 1


def test_cp_97_a_stage_reads_what_those_before_it_passed_on(clinic: Clinic) -> None:
    """CP-97, CP-21: later words replace earlier ones; file, endpoint and estimate are fixed."""
    made = clinic.upload()
    foreign = clinic.upload(clinic.admit())
    taken = {"shell_file_id": str(foreign.file_id), "endpoint": "x/y", "estimated_tokens": 9}
    passed: dict[str, Any] = {}
    clinic.producer.value("select clinical.cancel_job(%s)", foreign.job_id)
    for place, stage in enumerate(STAGES):
        claimed = clinic.claim()
        assert claimed.job_type == stage
        fixed = {"shell_file_id": str(made.file_id), "estimated_tokens": 1000}
        endpoint = {"endpoint": claimed.job_payload["endpoint"]} if place in (1, 3, 4, 5) else {}
        assert claimed.job_payload == passed | fixed | endpoint
        assert clinic.row(claimed.job_id).job_payload == claimed.job_payload
        new = {"last": stage, f"from {stage}": place}
        assert clinic.complete(claimed.job_id, result={"next_payload": new | taken})
        passed |= new
    assert clinic.limit().current_tokens_minute == 3000
    assert the_file(clinic, made.file_id).completed_at is not None
    assert the_file(clinic, foreign.file_id).completed_at is None


def test_cp_08_an_endpoint_with_little_turns_no_upload_away(clinic: Clinic) -> None:
    """CP-08, CP-21: a stage is estimated at what its endpoint can ever give, or at 1,000."""
    clinic.operator.connection.execute(
        "update clinical.api_rate_limits set tokens_per_minute = 900 where provider_name = 'openai'"
    )
    rows = jobs(clinic, clinic.upload().file_id)
    estimates = [row.job_payload["estimated_tokens"] for row in rows]
    assert estimates == [1000, 1000, 1000, 900, 900, 900]
    assert [finish(clinic) for _ in STAGES[:3]] == STAGES[:3]
    assert clinic.claim().job_type == AI
    assert clinic.limit().current_tokens_minute == 900


@pytest.mark.parametrize("said", [None, [1], "text", {"next_payload": [1]}, {"next_payload": 5}])
def test_a_result_that_passes_nothing_on(clinic: Clinic, said: Any) -> None:
    made = clinic.upload()
    assert clinic.worker.value(
        "select clinical.complete_job(%s, 'w1', %s)", clinic.claim().job_id, Jsonb(said)
    )
    claimed = clinic.claim()
    assert claimed.job_payload["shell_file_id"] == str(made.file_id)
    assert claimed.job_payload.keys() == {"shell_file_id", "estimated_tokens", "endpoint"}


@pytest.mark.parametrize("end", ["completed", "dead"])
def test_cp_97_a_forged_workflow_moves_no_file(clinic: Clinic, end: str) -> None:
    """CP-97: a producer can start any graph; which one is a file's pipeline, the profile says."""
    made = clinic.upload()
    clinic.producer.value(
        "select workflow_id from trunkline.start_workflow(%s)",
        Jsonb(
            {
                "name": "clinical_upload",
                "tenant": str(clinic.patient),
                "correlation_id": str(made.file_id),
                "steps": [
                    {
                        "name": "ai_queue_pass3",
                        "task": "ai_queue_pass3",
                        "payload": {"shell_file_id": str(made.file_id)},
                        "cost": {"tokens": 1},
                    }
                ],
            }
        ),
    )
    forged = clinic.claim("w1", "ai_queue_pass3")
    if end == "completed":
        assert clinic.complete(forged.job_id)
    else:
        die(clinic, forged.job_id)
    assert clinic.worker.value("select clinical.note_stopped_files()") == 0
    file = the_file(clinic, made.file_id)
    assert (file.completed_at, file.processing_error) == (None, None)


def test_a_dead_job_outside_the_pipeline_leaves_the_file_alone(clinic: Clinic) -> None:
    """CP-01: processing_error says why the pipeline stopped, and it did not."""
    made = clinic.upload()
    other = clinic.enqueue(AI, {"shell_file_id": str(made.file_id)})
    assert clinic.claim("w1", AI).job_id == other
    die(clinic, other)
    assert clinic.worker.value("select clinical.note_stopped_files()") == 0
    assert the_file(clinic, made.file_id).processing_error is None


def test_cp_50_a_cancelled_stage_cancels_the_rest(clinic: Clinic) -> None:
    """CP-50: also one whose turn has not come."""
    made = clinic.upload()
    later = jobs(clinic, made.file_id)[2]
    assert clinic.producer.value("select clinical.cancel_job(%s)", later.id) == "cancelled"
    assert [finish(clinic) for _ in range(2)] == STAGES[:2]
    assert clinic.claim() is None
    rows = jobs(clinic, made.file_id)
    assert [row.status for row in rows] == [*["completed"] * 2, *["cancelled"] * 4]
    assert workflow(clinic, made.file_id).state == "cancelled"
    assert the_file(clinic, made.file_id).completed_at is None
