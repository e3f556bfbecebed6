"""An attempt of a task: heartbeats, completion with files, failure, and loss."""

import base64
from functools import partial
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from profiles.tests.studio.conftest import AUDIO, PDF, TEXT, Studio, refused
from tests.support.waiting import together

DIGEST = "0" * 64


@pytest.fixture
def task(studio: Studio) -> Any:
    """A text task that runs on worker w1."""
    studio.order()
    return studio.claim(TEXT, count=1)[0]


def test_a_heartbeat_keeps_the_lease_of_its_worker(studio: Studio, task: Any) -> None:
    """TA-21: false for another worker, another attempt and an unknown task."""
    assert studio.beat(task.id)
    assert studio.beat(task.id, attempt=task.attempt)
    assert not studio.beat(task.id, worker="w2")
    assert not studio.beat(task.id, attempt=task.attempt + 1)
    assert not studio.beat(uuid4())
    for _ in range(3):
        studio.pass_time("2 minutes")
        assert studio.beat(task.id)
    assert studio.worker.value("select studio.reclaim_stale_tasks()") == 0


def test_only_the_owner_completes_a_task_and_may_repeat_it(studio: Studio, task: Any) -> None:
    """TA-22, TA-56: true for the owner's repetition, which changes nothing."""
    assert not studio.complete(task.id, worker="w2")
    assert not studio.complete(task.id, attempt=task.attempt + 1)
    output, files = studio.product(task)
    assert studio.complete(task.id, output, files)
    assert studio.complete(task.id, {"other": 1}, None)
    assert studio.complete(task.id, output, files, attempt=task.attempt)
    assert not studio.complete(task.id, output, files, attempt=task.attempt + 1)
    (row,) = [t for t in studio.tasks(task.job_id) if t.id == task.id]
    assert (row.status, row.output) == ("complete", output)
    assert len(studio.artifacts(task.job_id)) == 1


def test_a_task_fails_for_good_at_the_third_attempt(studio: Studio, task: Any) -> None:
    """TA-23, TA-25: pending after a delay, then failed; counted once for each claim."""
    studio.unlimited()
    assert studio.fail(task.id, worker="w2") is None
    answers = [studio.fail(task.id, "no paper")]
    for attempts in (2, 3):
        studio.pass_time("10 minutes")
        (again,) = [t for t in studio.claim(TEXT, count=50) if t.id == task.id]
        assert again.attempts == attempts
        answers.append(studio.fail(task.id, "no paper"))
    assert answers == ["pending", "pending", "failed"]
    (row,) = [t for t in studio.tasks(task.job_id) if t.id == task.id]
    assert (row.status, row.attempts, row.error) == ("failed", 3, "no paper")


def test_the_delay_after_a_failure_doubles_with_jitter(studio: Studio, task: Any) -> None:
    """TA-77: base 5 s, factor 2, cap 300 s, and a fifth more or less."""
    (policy,) = studio.rows(
        "select extract(epoch from backoff_base) as base, backoff_factor,"
        " extract(epoch from backoff_cap) as cap, backoff_jitter from trunkline.tasks"
        " where task = %s",
        TEXT,
    )
    assert [float(number) for number in policy] == [5, 2, 300, 0.2]
    studio.unlimited()
    for seconds in (5, 10):
        before = studio.worker.value("select trunkline.clock()")
        studio.fail(task.id)
        (row,) = [t for t in studio.tasks(task.job_id) if t.id == task.id]
        assert 0.8 * seconds <= (row.run_at - before).total_seconds() <= 1.2 * seconds + 5
        studio.pass_time("1 minute")
        studio.claim(TEXT, count=50)


def test_a_silent_task_is_taken_back_after_180_seconds(studio: Studio, task: Any) -> None:
    """TA-24, TA-64: by one of many callers at once; a loss counts as an attempt."""
    studio.pass_time("179 seconds")
    assert studio.worker.value("select studio.reclaim_stale_tasks()") == 0
    studio.pass_time("2 seconds")
    connections = [studio.database.connect("trunkline_worker") for _ in range(6)]
    query = b"select studio.reclaim_stale_tasks()"

    def reclaim(connection: Any) -> int:
        found: int = connection.execute(query).fetchone()[0]
        return found

    found = together([partial(reclaim, connection) for connection in connections])
    assert sorted(found) == [0, 0, 0, 0, 0, 1]
    (row,) = [t for t in studio.tasks(task.job_id) if t.id == task.id]
    assert (row.status, row.attempts, row.worker_id) == ("pending", 1, None)


def test_a_task_ends_at_its_time_limit_whatever_it_sends(studio: Studio) -> None:
    """TA-68: text 10 min, PDF 5 min, audio 30 min."""
    rows = studio.rows(
        "select task, extract(epoch from hard_limit) / 60 as minutes from trunkline.tasks"
        " where profile = 'studio'"
    )
    limits = {row.task: int(row.minutes) for row in rows}
    assert (limits[TEXT], limits[PDF], limits[AUDIO]) == (10, 5, 30)
    studio.order()
    studio.work(TEXT, count=1)
    (pdf,) = studio.claim(PDF)
    for _ in range(2):
        studio.pass_time("2 minutes")
        assert studio.beat(pdf.id)
    studio.pass_time("61 seconds")
    assert studio.worker.value("select studio.reclaim_stale_tasks()") == 1
    assert not studio.beat(pdf.id)


def test_files_are_published_with_the_completion(studio: Studio, task: Any) -> None:
    """TA-12, TA-26, TA-71: no row before; type, name, path, size and hash with it."""
    output, files = studio.product(task)
    studio.worker.value(
        "select trunkline.stage_artifact('w1', %s, %s, %s, 1000, %s)",
        *(task.id, task.attempt, files[0]["path"], files[0]["sha256"]),
    )
    assert studio.artifacts(task.job_id) == []
    studio.complete(task.id, output, files)
    (row,) = studio.artifacts(task.job_id)
    assert (row.task_id, row.artifact_type, row.name) == (task.id, "json", "chapter1.json")
    assert (row.file_size_bytes, row.sha256) == (1000, files[0]["sha256"])
    assert row.created_at is not None
    assert row.storage_path == files[0]["path"]


def test_one_task_publishes_several_files_of_one_type(studio: Studio, task: Any) -> None:
    """TA-70, TA-71: chapter1.json and chapter1_metadata.json are different files."""
    files = [
        {"path": studio.prepare(task.id, "json", name), "bytes": 5, "sha256": DIGEST}
        for name in ("chapter1.json", "chapter1_metadata.json")
    ]
    studio.complete(task.id, {}, files)
    names = [row.name for row in studio.artifacts(task.job_id)]
    assert names == ["chapter1.json", "chapter1_metadata.json"]


def test_the_path_names_user_job_class_and_attempt(studio: Studio, task: Any) -> None:
    """TA-48, TA-54, TA-55: one path for each upload, under the user's own prefix."""
    paths = [studio.prepare(task.id, "json", "chapter1.json") for _ in range(2)]
    assert paths[0] != paths[1]
    for path in paths:
        user, job, kind, name = path.split("/")
        assert str(studio.user) in user
        assert (job, kind) == (str(task.job_id), "json")
        assert name.startswith(f"{task.id}-{task.attempt}-")
        assert name.endswith("chapter1.json")


def test_a_worker_that_lost_its_task_leaves_nothing(studio: Studio, task: Any) -> None:
    """TA-27, TA-50, TA-56: no row, no file, and the later attempt's file stays as it is."""
    studio.unlimited()
    path = studio.prepare(task.id, "json", "chapter1.json")
    studio.pass_time("181 seconds")
    studio.worker.value("select studio.reclaim_stale_tasks()")
    studio.pass_time("10 minutes")
    late = {"path": path, "bytes": 5, "sha256": DIGEST}
    assert not studio.complete(task.id, {}, [late])
    assert not studio.complete(task.id, {}, [late], attempt=task.attempt)
    with refused("TA007"):
        studio.prepare(task.id, "json", "chapter1.json")
    (again,) = [t for t in studio.claim(TEXT, count=50, worker="w2") if t.id == task.id]
    output, files = studio.product(again, "w2")
    assert studio.complete(task.id, output, files, worker="w2")
    assert not studio.complete(task.id, {}, [late], attempt=task.attempt)
    (row,) = studio.artifacts(task.job_id)
    assert row.storage_path == files[0]["path"] != path
    assert path in {r.path for r in studio.rows("select path from trunkline.file_removals")}


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ([{"path": "x/y.json", "bytes": 5, "sha256": DIGEST}], None),
        ([{"bytes": 5, "sha256": DIGEST}], None),
        ([{"path": 7, "bytes": "many", "sha256": DIGEST}], "TA008"),
        ({"path": "x"}, "TA008"),
    ],
)
def test_a_file_that_was_not_prepared_is_refused(
    studio: Studio, task: Any, files: Any, code: str | None
) -> None:
    """TA-12, TA-26: and the task is not completed."""
    with pytest.raises(psycopg.Error) as raised:
        studio.complete(task.id, {}, files)
    assert code is None or raised.value.sqlstate == code
    assert studio.beat(task.id)


def test_an_unknown_type_of_file_is_refused(studio: Studio, task: Any) -> None:
    """TA-12, TA-49: MP3, M4A, PDF and JSON; WAV is never stored."""
    with refused("TA008"):
        studio.prepare(task.id, "audio_wav", "chapter1.wav")


@pytest.mark.parametrize(
    "output",
    [
        {"audio": base64.b64encode(bytes(750_000)).decode()},
        {"audio": base64.b64encode(bytes(3000)).decode()},
        {"pages": ["data:application/pdf;base64,JVBERi0="]},
        {"deep": [{"pdf_base64": "JVBERi0="}]},
        {"text": "many words " * 30_000},
    ],
)
def test_content_in_the_output_is_refused(studio: Studio, task: Any, output: Any) -> None:
    """TA-02, TA-49, TA-S10: with a message that says what to do; the task still runs."""
    with refused("TA003") as raised:
        studio.complete(task.id, output)
    assert "output cannot be stored" in str(raised.value)
    assert "artifact" in str(raised.value.diag.message_hint)
    assert studio.beat(task.id)
    assert studio.complete(task.id, {"name": "chapter1.json", "sha256": DIGEST})


def test_no_table_has_a_column_for_bytes(studio: Studio) -> None:
    """TA-01, TA-02: tables hold state and metadata."""
    rows = studio.rows(
        "select attrelid::regclass::text || '.' || attname as name from pg_attribute"
        " join pg_class as c on c.oid = attrelid"
        " where c.relnamespace = 'studio'::regnamespace and atttypid = 'bytea'::regtype"
    )
    assert rows == []
