"""Orders: what a start stores, what it refuses, and what a key returns."""

import base64
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from profiles.tests.studio.conftest import AUDIO, FINAL, PARAMS, PDF, TEXT, Studio, refused
from tests.support.waiting import together

MEGABYTE = base64.b64encode(b"\0\xff" * 375_000).decode()


def test_an_order_has_48_tasks_in_the_order_of_its_documents(studio: Studio) -> None:
    """TA-04, TA-08, TA-11, TA-S01: 16 documents with text, PDF and audio each; texts can start."""
    started = studio.start()
    assert (started.status, started.created) == ("queued", True)
    tasks = studio.tasks(started.job_id)
    assert [task.sequence for task in tasks] == list(range(48))
    assert [task.task_type for task in tasks] == [TEXT, PDF, AUDIO] * 16
    assert [task.input["title"] for task in tasks[:4]] == ["Portraits"] * 3 + ["Hunger"]
    assert {task.task_type: task.status for task in tasks} == {
        TEXT: "pending",
        PDF: "blocked",
        AUDIO: "blocked",
    }
    assert {(task.attempts, task.max_attempts) for task in tasks} == {(0, 3)}
    studio.unlimited()
    assert [task.sequence for task in studio.claim(count=50)] == list(range(0, 48, 3))


def test_a_job_shows_its_user_type_params_status_and_progress(studio: Studio) -> None:
    """TA-10: the columns of jobs; queued is 0 percent."""
    job = studio.order()
    row = studio.job(job)
    assert (row.user_id, row.type, row.status) == (str(studio.user), "nuclear_v2", "queued")
    assert row.params == PARAMS
    assert row.progress == {
        "percent": 0,
        "phase": "queued",
        "docsComplete": 0,
        "docsTotal": 16,
        "message": "Waiting for a worker",
    }


@pytest.mark.parametrize(
    ("kind", "params", "code"),
    [
        ("nuclear_v3", PARAMS, "TA001"),
        (None, PARAMS, "TA001"),
        ("nuclear_v2", None, "TA002"),
        ("nuclear_v2", [], "TA002"),
        ("nuclear_v2", PARAMS | {"person1": "Ann"}, "TA002"),
        ("nuclear_v2", PARAMS | {"person1": {"name": "Ann"}}, "TA002"),
        ("nuclear_v2", PARAMS | {"person2": {"name": "", "born": "1990-01-01"}}, "TA002"),
        ("nuclear_v2", PARAMS | {"person2": {"name": "B", "born": "yesterday"}}, "TA002"),
        ("nuclear_v2", PARAMS | {"person2": {"name": "B", "born": "1990-02-31"}}, "TA002"),
        ("nuclear_v2", PARAMS | {"person2": {"name": "B", "born": "2990-02-03"}}, "TA002"),
        ("nuclear_v2", PARAMS | {"systems": []}, "TA002"),
        ("nuclear_v2", PARAMS | {"systems": ["tarot"]}, "TA002"),
        ("nuclear_v2", PARAMS | {"systems": [7]}, "TA002"),
        ("nuclear_v2", PARAMS | {"picture": MEGABYTE}, "TA003"),
        ("nuclear_v2", PARAMS | {"picture": "data:image/png;base64,AAAA"}, "TA003"),
        ("nuclear_v2", PARAMS | {"audioBase64": "AAAA"}, "TA003"),
    ],
)
def test_a_wrong_order_is_refused_and_nothing_is_stored(
    studio: Studio, kind: str | None, params: Any, code: str
) -> None:
    """TA-02, TA-05: invalid type or params, and content of files."""
    with refused(code):
        studio.producer.value(
            "select studio.start_job(%s, %s, null, %s)",
            kind,
            None if params is None else Jsonb(params),
            studio.user,
        )
    assert studio.rows("select count(*) from trunkline.workflows")[0].count == 0
    assert studio.rows("select count(*) from trunkline.jobs")[0].count == 0


def test_an_order_without_a_user_is_refused(studio: Studio) -> None:
    """TA-58: every job has a user."""
    with refused("TA005"):
        studio.producer.value("select studio.start_job('nuclear_v2', %s)", Jsonb(PARAMS))


def test_an_order_is_stored_with_all_its_tasks_or_not_at_all(studio: Studio) -> None:
    """TA-06: the start is one transaction, so a job without tasks cannot exist."""
    connection = studio.database.connect("trunkline_producer", autocommit=False)
    connection.execute(
        "select studio.start_job('nuclear_v2', %s, null, %s)", (Jsonb(PARAMS), studio.user)
    )
    assert studio.rows("select count(*) from studio.jobs")[0].count == 0
    connection.rollback()
    assert studio.rows("select count(*) from trunkline.jobs")[0].count == 0
    studio.order()
    assert studio.rows("select count(*) from studio.job_tasks")[0].count == 48


def test_a_key_returns_the_job_of_the_same_user(studio: Studio) -> None:
    """TA-07, TA-S12: five times the same request is one job; another user has another one."""
    connections = [studio.database.connect("trunkline_producer") for _ in range(5)]
    query = b"select job_id from studio.start_job('nuclear_v2', %s, 'order-1', %s)"

    def start(connection: Any) -> Any:
        return connection.execute(query, (Jsonb(PARAMS), studio.user)).fetchone()[0]

    found = together([partial(start, connection) for connection in connections])
    assert len(set(found)) == 1
    assert studio.rows("select count(*) from studio.job_tasks")[0].count == 48
    assert studio.order(user=uuid4(), key="order-1") != found[0]
    again = studio.start(key="order-1")
    assert (again.job_id, again.created) == (found[0], False)


def test_each_pdf_and_each_recording_waits_for_the_text_of_its_document_only(
    studio: Studio,
) -> None:
    """TA-09, TA-17: the PDF and the audio of a document follow its text, not the previous task."""
    job = studio.order()
    (text,) = studio.claim(TEXT, count=1)
    assert studio.claim(PDF) == studio.claim(AUDIO) == []
    output, files = studio.product(text)
    studio.complete(text.id, output, files)
    (pdf,) = studio.claim(PDF)
    (audio,) = studio.claim(AUDIO)
    assert (pdf.sequence, audio.sequence) == (1, 2)
    assert pdf.input["text"] == audio.input["text"] == output
    steps = studio.rows(
        "select place, after from trunkline.workflow_steps where workflow_id = %s order by place",
        job,
    )
    for step in steps[:48]:
        text_step = [f"text-{step.place // 3 + 1:02}"]
        assert step.after == (text_step if step.place % 3 else None)
    assert len(steps[48].after) == 48


def test_the_internal_task_is_not_among_the_48(studio: Studio) -> None:
    """TA-72: it depends on all of them, has a budget of 3, a pool and a time limit of its own."""
    job = studio.order()
    (task,) = studio.rows(
        "select j.state, j.queue, j.max_attempts, t.hard_limit from trunkline.jobs as j"
        " join trunkline.tasks as t on t.task = j.task where j.workflow_id = %s and j.task = %s",
        job,
        FINAL,
    )
    assert (task.state, task.queue, task.max_attempts) == ("blocked", "studio-final", 3)
    assert task.hard_limit.total_seconds() == 600
    assert studio.progress(job)["docsTotal"] == 16


def test_ids_of_tasks_are_uuids_that_attempts_keep(studio: Studio) -> None:
    """TA-53: a retry is the same task."""
    studio.unlimited()
    studio.order()
    (first,) = studio.claim(TEXT, count=1)
    studio.fail(first.id)
    studio.pass_time("1 hour")
    again = [task for task in studio.claim(TEXT, count=50) if task.id == first.id]
    assert [task.attempts for task in again] == [2]


def test_deleting_a_job_removes_its_tasks_rows_and_files(studio: Studio) -> None:
    """TA-13: the files are queued for removal."""
    job = studio.order()
    studio.work(TEXT, count=3)
    paths = {row.storage_path for row in studio.artifacts(job)}
    assert len(paths) == 3
    running = studio.claim(TEXT, count=1)[0]
    delete = "select studio.delete_job(%s)"
    assert studio.producer.value(delete, job) == "cancelling"
    assert not studio.beat(running.id)
    assert studio.producer.value(delete, job) == "deleted"
    assert studio.rows("select * from studio.jobs") == studio.tasks(job) == []
    assert studio.artifacts(job) == []
    removals = studio.rows("select path from trunkline.file_removals")
    assert paths <= {row.path for row in removals}
    # Their rows stay for a while.
    dead = "select * from trunkline.list_artifacts(p_workflow => %s, p_deleted => true)"
    tombstones = studio.rows(dead, job)
    assert {row.storage_path for row in tombstones} == paths
    assert {row.delete_reason for row in tombstones} == {"the job was deleted"}
    with refused("TA004"):
        studio.producer.value(delete, job)


def test_cancelling_keeps_what_is_finished(studio: Studio) -> None:
    """TA-67: waiting tasks end at once, running ones at their next heartbeat."""
    job = studio.order()
    studio.work(TEXT, count=2)
    running = studio.claim(TEXT, count=1)[0]
    assert studio.producer.value("select studio.cancel_job(%s)", job) == "requested"
    states = {task.status for task in studio.tasks(job)}
    assert states == {"complete", "cancelled", "claimed"}
    assert studio.beat(running.id) is False
    assert studio.job(job).status == "cancelled"
    assert {task.status for task in studio.tasks(job)} == {"complete", "cancelled"}
    assert len(studio.artifacts(job)) == 2
    with refused("TA004"):
        studio.producer.value("select studio.cancel_job(%s)", uuid4())
