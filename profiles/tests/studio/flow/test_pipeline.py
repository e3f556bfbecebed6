"""An order from start to end, with the three typed pools and the one that combines."""

import io
import json
import signal
from typing import Any
from uuid import uuid4

import msgspec
import pikepdf
import psycopg
import pytest
from psycopg.types.json import Jsonb

from profiles.tests.studio.conftest import AUDIO, FINAL, PDF, TEXT, Studio
from profiles.tests.studio.flow.conftest import Scene
from tests.support.internals.steps import once_results
from trunkline_profiles.studio.handlers.chapter import decode
from trunkline_profiles.studio.handlers.mp3 import measure

POOLS = ("text", "pdf", "audio", "final")


def test_an_order_becomes_texts_pages_and_recordings(three: Scene) -> None:
    """TA-28, TA-29, TA-30, TA-42, TA-44, TA-48, TA-70, TA-74: files that open, made once."""
    studio = three.studio
    job = studio.order()
    three.work(*POOLS)
    assert three.ended(job) == "complete"
    files = three.files(job)
    assert set(files) == {
        *(f"chapter{n}.{end}" for n in (1, 2, 3) for end in ("json", "pdf", "mp3")),
        *(f"chapter{n}_metadata.json" for n in (1, 2, 3)),
        "full_nuclear.pdf",
        "full_nuclear.json",
    }
    rows = {row.name: row for row in studio.artifacts(job)}
    for n in (1, 2, 3):
        chapter = decode(files[f"chapter{n}.json"])
        assert chapter.title == ["Portraits", "Hunger", "Rhythm"][n - 1]
        with pikepdf.open(io.BytesIO(files[f"chapter{n}.pdf"])) as pdf:
            assert len(pdf.pages) == 1
        seconds = measure(files[f"chapter{n}.mp3"]).duration
        assert rows[f"chapter{n}.mp3"].duration_seconds == pytest.approx(seconds, abs=0.001)
        facts = json.loads(files[f"chapter{n}_metadata.json"])
        assert {one["type"] for one in facts["files"]} == {"json", "pdf", "audio_mp3"}
        assert facts["words"] == chapter.words
    full = json.loads(files["full_nuclear.json"])
    assert [chapter["title"] for chapter in full["chapters"]] == ["Portraits", "Hunger", "Rhythm"]
    with pikepdf.open(io.BytesIO(files["full_nuclear.pdf"])) as pdf:
        assert len(pdf.pages) > 3
    (final,) = studio.rows(
        "select attempt, state from trunkline.jobs where workflow_id = %s and task = %s", job, FINAL
    )
    assert (final.attempt, final.state) == (1, "completed")
    # Nothing of it is in the database: only metadata.
    for task in studio.tasks(job):
        assert set(task.output) <= {"name", "path", "sha256", "bytes", "words", "duration"}


def test_the_charts_are_computed_once_and_nobody_holds_a_slot_for_them(three: Scene) -> None:
    """TA-57, TA-73: other texts are suspended until the first one has stored the base data."""
    studio = three.studio
    job = studio.order()
    assert {task.status for task in studio.tasks(job, TEXT)} == {"pending"}
    three.work("text")
    three.wait(
        lambda: {task.status for task in studio.tasks(job, TEXT)} == {"complete"}, "all texts exist"
    )
    ((name, result),) = once_results(studio.database.superuser())
    assert name == "base_data"
    assert [chart["name"] for chart in result["charts"]] == ["Ann", "Bob"]
    assert {task.attempts for task in studio.tasks(job, TEXT)} == {0}
    # Each text was asked for under its own task's id.
    assert three.model.keys == {str(task.id): 1 for task in studio.tasks(job, TEXT)}


def test_a_model_that_always_fails_ends_the_job_with_one_document_named(three: Scene) -> None:
    """TA-25, TA-42, TA-S06: three tries in total for the task, and the others finish."""
    studio = three.studio
    job = studio.order()
    # Real waits, but short: a moved clock would make its worker look gone.
    studio.operator.value(
        "select trunkline.register_task(%s, p_backoff => %s)",
        *(TEXT, Jsonb({"base": 0.1, "factor": 2, "cap": 1, "jitter": 0.2})),
    )
    bad = studio.tasks(job, TEXT)[1]
    three.model.refuse_key(str(bad.id))
    three.work(*POOLS)
    assert three.ended(job) == "failed"
    found = studio.read(job)
    assert found["failedDocuments"] == ["Hunger"]
    assert found["progress"]["docsComplete"] == 2
    states = {task.sequence: task.status for task in studio.tasks(job)}
    assert (states[3], states[4], states[5]) == ("failed", "cancelled", "cancelled")
    assert three.model.keys[str(bad.id)] == 3
    assert len(three.files(job)) == 6


def test_a_killed_worker_is_not_paid_for_twice(three: Scene) -> None:
    """TA-27, TA-57: the answer is lost with its worker; the key returns it again."""
    studio = three.studio
    job = studio.order()
    three.model.hold.clear()
    (worker,) = three.work("text")
    three.wait(lambda: three.model.under_way() == 3, "all texts are being written")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    three.model.hold.set()
    three.later("5 minutes")
    three.later("5 minutes")
    three.work(*POOLS)
    assert three.ended(job) == "complete"
    assert sorted(three.model.keys.values()) == [2, 2, 2]
    assert three.model.paid == 3


def test_a_worker_killed_before_its_completion_leaves_one_combined_file_of_each_kind(
    three: Scene,
) -> None:
    """TA-27, TA-44, TA-72: everything is uploaded and recorded, and not published."""
    studio = three.studio
    job = studio.order()
    three.work("text", "pdf", "audio")
    three.wait(lambda: studio.progress(job)["percent"] == 95, "all documents exist")
    holder = studio.database.superuser(autocommit=False)
    # What completions write; uploads and steps pass.
    holder.execute("lock table trunkline.throughput in share mode")
    (worker,) = three.work("final")
    three.wait(lambda: studio.progress(job)["percent"] == 99, "all parts are recorded")
    pids = three.wait(lambda: blocked_by(studio, holder), "the completion waits")
    # The files of three documents, and nothing of the last task.
    assert len(studio.artifacts(job)) == 9
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    # The session of a killed process would carry out what it waits to do.
    for pid in pids:
        studio.database.superuser().execute("select pg_terminate_backend(%s, 5000)", (pid,))
    holder.rollback()
    assert studio.progress(job)["percent"] == 99
    three.later("5 minutes")
    three.later("5 minutes")
    three.work("final")
    assert three.ended(job) == "complete"
    (final,) = studio.rows(
        "select attempt, state from trunkline.jobs where workflow_id = %s and task = %s", job, FINAL
    )
    assert (final.attempt, final.state) == (2, "completed")
    names = [file.name for file in studio.artifacts(job)]
    assert len(names) == len(set(names)) == 14
    assert {"full_nuclear.pdf", "full_nuclear.json"} <= set(names)
    # Every file of the store is the one of a row: the second attempt made nothing again.
    paths = {file.storage_path for file in studio.artifacts(job)}
    assert {file.path for file in three.store.list() if "/" in file.path} == paths
    assert three.files(job).keys() == set(names)


def blocked_by(studio: Studio, holder: psycopg.Connection[Any]) -> list[int]:
    """Return the server processes that wait for a connection's locks."""
    rows = studio.database.superuser().execute(
        "select pid from pg_stat_activity where %s = any (pg_blocking_pids(pid))",
        (holder.info.backend_pid,),
    )
    return [pid for (pid,) in rows]


def test_workers_decide_how_many_workers_the_pools_want(scene: Scene) -> None:
    """TA-63: a running worker is all that it takes."""
    studio = scene.studio
    scene.model.hold.clear()
    for _ in range(10):
        studio.order(uuid4())
    scene.work("text")
    query = "select wanted from studio.pool_decisions where task_type = %s and wanted = 5"
    scene.wait(lambda: studio.rows(query, TEXT), "the text pool wants five workers")
    scene.model.hold.set()


def test_a_cancelled_order_stops_and_keeps_its_files(three: Scene) -> None:
    """TA-67: while the model writes."""
    studio = three.studio
    job = studio.order()
    three.model.hold.clear()
    three.work("text")
    three.wait(lambda: three.model.under_way() == 3, "all texts are being written")
    assert studio.producer.value("select studio.cancel_job(%s)", job) == "requested"
    assert three.ended(job) == "cancelled"
    three.model.hold.set()
    assert {task.status for task in studio.tasks(job)} == {"cancelled"}
    assert three.files(job) == {}


def test_each_pool_serves_its_type(three: Scene) -> None:
    """TA-31, TA-33: text, PDF, audio and the internal task, five at once."""
    studio = three.studio
    three.work(*POOLS)
    three.wait(
        lambda: len(studio.rows("select from trunkline.workers where alive")) == 4, "all are ready"
    )
    rows = studio.rows("select worker, tasks from trunkline.workers where alive")
    assert sorted(task for row in rows for task in row.tasks) == sorted([TEXT, PDF, AUDIO, FINAL])
    assert len({row.worker for row in rows}) == 4
    assert msgspec.json.encode(sorted(row.worker.split("-")[1] for row in rows)) == (
        b'["audio","final","pdf","text"]'
    )
