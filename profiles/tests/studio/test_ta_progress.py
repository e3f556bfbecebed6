"""Progress: derived from the states of the tasks, and never going back."""

from fractions import Fraction
from math import floor
from typing import Any

import pytest

from profiles.tests.studio.conftest import AUDIO, FINAL, PDF, TEXT, Studio
from tests.support.waiting import together


@pytest.fixture
def job(studio: Studio) -> Any:
    studio.unlimited()
    return studio.order()


def bar(studio: Studio, job: Any) -> tuple[int, str]:
    progress = studio.progress(job)
    return progress["percent"], progress["phase"]


def complete(studio: Studio, kind: str, count: int) -> None:
    """Complete so many tasks of a type."""
    for task in studio.claim(kind, count=count) if count else ():
        studio.complete(task.id, *studio.product(task))


def test_the_formula_is_the_source_s_for_every_number_of_tasks(studio: Studio) -> None:
    """TA-37, TA-39: 10 + 40 t + 20 p + 25 a, rounded down, for all counts of 16 documents."""
    rows = studio.rows(
        "select t, p, a, studio.percent(16, t, p, a) as percent from generate_series(0, 16) as t,"
        " generate_series(0, 16) as p, generate_series(0, 16) as a where p <= t and a <= t",
        calls=_owner(studio),
    )
    assert len(rows) == sum((t + 1) ** 2 for t in range(17))
    for t, p, a, percent in rows:
        assert percent == floor(10 + Fraction(40 * t + 20 * p + 25 * a, 16))


def _owner(studio: Studio) -> Any:
    from tests.support.calls import Calls  # noqa: PLC0415

    return Calls(studio.database.connect("trunkline_owner"))


def test_the_bar_passes_through_all_phases(studio: Studio, job: Any) -> None:
    """TA-38, TA-40, TA-S04: queued 0, calculating 5, then text, pdf, audio, finalizing, 100."""
    assert bar(studio, job) == (0, "queued")
    first = studio.claim(TEXT, count=16)
    assert bar(studio, job) == (5, "calculating")
    assert studio.job(job).status == "processing"
    assert studio.store_base_data(first[0]) == "ok"
    assert bar(studio, job) == (10, "text")
    for task in first[:7]:
        studio.complete(task.id, *studio.product(task))
    assert bar(studio, job) == (27, "text")
    for task in first[7:]:
        studio.complete(task.id, *studio.product(task))
    assert bar(studio, job) == (50, "pdf")
    complete(studio, PDF, 8)
    assert studio.progress(job) == {
        "percent": 60,
        "phase": "pdf",
        "docsComplete": 0,
        "docsTotal": 16,
        "message": "Setting Home",
    }
    complete(studio, PDF, 8)
    assert bar(studio, job) == (70, "audio")
    complete(studio, AUDIO, 4)
    assert studio.progress(job) == {
        "percent": 76,
        "phase": "audio",
        "docsComplete": 4,
        "docsTotal": 16,
        "message": "Recording Mirrors",
    }
    complete(studio, AUDIO, 12)
    assert bar(studio, job) == (95, "finalizing")
    assert studio.job(job).status == "processing"
    (final,) = studio.claim(FINAL)
    for percent, step in ((96, "metadata"), (97, "pdf"), (98, "json")):
        assert bar(studio, job) == (percent, "finalizing")
        studio.step(final, step)
    assert bar(studio, job) == (99, "finalizing")
    studio.fail(final.id)
    assert bar(studio, job) == (99, "finalizing")
    studio.pass_time("1 minute")
    studio.work(FINAL)
    assert studio.progress(job) == {
        "percent": 100,
        "phase": "complete",
        "docsComplete": 16,
        "docsTotal": 16,
        "message": "16 documents are ready",
    }
    assert studio.job(job).status == "complete"


def test_the_message_names_a_document_that_a_worker_has(studio: Studio, job: Any) -> None:
    """TA-41: the first one that waits only if none runs."""
    first, second = studio.claim(TEXT, count=2)
    studio.store_base_data(first)
    assert studio.progress(job)["message"] == "Writing Portraits"
    studio.fail(first.id)
    assert studio.progress(job)["message"] == "Writing Hunger"
    studio.fail(second.id)
    assert studio.progress(job)["message"] == "Writing Portraits"


def test_nobody_writes_progress(studio: Studio, job: Any) -> None:
    """TA-03, TA-37: it has no column; every reader computes it from the steps."""
    columns = studio.rows(
        "select c.table_name from information_schema.columns as c"
        " join pg_class as k on k.relname = c.table_name and k.relkind = 'r'"
        " and k.relnamespace = 'studio'::regnamespace"
        " where c.table_schema = 'studio' and c.column_name = 'progress'"
    )
    assert {row.table_name for row in columns} <= {"legacy_jobs"}
    assert studio.progress(job)["percent"] == studio.job(job).progress["percent"]
    assert studio.progress(studio.user) is None


@pytest.mark.parametrize("round_", range(3))
def test_two_last_tasks_that_end_at_once_end_the_job(studio: Studio, job: Any, round_: int) -> None:
    """TA-43: the last PDF and the last recording complete at the same instant."""
    complete(studio, TEXT, 16)
    complete(studio, PDF, 15)
    complete(studio, AUDIO, 15)
    last = [studio.claim(PDF)[0], studio.claim(AUDIO)[0]]
    products = [studio.product(task) for task in last]
    workers = [studio.database.connect("trunkline_worker") for _ in last]

    def end(number: int) -> None:
        from psycopg.types.json import Jsonb  # noqa: PLC0415

        workers[number].execute(
            "select studio.complete_task(%s, 'w1', %s, null, %s)",
            (last[number].id, Jsonb(products[number][0]), Jsonb(products[number][1])),
        )

    together([lambda: end(round_ % 2), lambda: end(1 - round_ % 2)])
    studio.operator.value("select count(*) from trunkline.run_duties()")
    assert bar(studio, job) == (95, "finalizing")
    assert len(studio.work(FINAL)) == 1
    assert bar(studio, job) == (100, "complete")
    assert studio.work(FINAL) == []


def test_a_failed_document_does_not_stop_the_others(studio: Studio, job: Any) -> None:
    """TA-42, TA-S06: tried 3 times, its PDF and audio cancelled, 15 documents finish, failed."""
    for _ in range(3):
        claimed = studio.claim(TEXT, count=50)
        for task in claimed:
            if task.sequence == 6:
                studio.fail(task.id, "the model is silent")
            else:
                studio.complete(task.id, *studio.product(task))
        studio.pass_time("10 minutes")
    tasks = {task.sequence: task for task in studio.tasks(job)}
    assert (tasks[6].status, tasks[6].attempts, tasks[6].error) == (
        *("failed", 3),
        "the model is silent",
    )
    assert {tasks[7].status, tasks[8].status} == {"cancelled"}
    assert studio.job(job).status == "processing"
    assert studio.finish() == 30
    found = studio.read(job)
    assert (found["status"], found["failedDocuments"]) == ("failed", ["Rhythm"])
    assert found["progress"]["docsComplete"] == 15
    assert found["progress"]["message"] == "Failed: Rhythm"
    assert len(found["artifacts"]) == 45
    assert studio.claim(FINAL) == []
    # An operator runs the failed part again; the rest is not done twice.
    assert studio.operator.value("select studio.retry_job(%s)", job)
    assert studio.finish() == 3
    studio.work(FINAL)
    assert studio.job(job).status == "complete"


def test_a_job_whose_end_fails_keeps_its_documents(studio: Studio, job: Any) -> None:
    """TA-72: the internal task dies after three attempts."""
    studio.finish()
    for _ in range(3):
        (final,) = studio.claim(FINAL)
        studio.fail(final.id)
        studio.pass_time("10 minutes")
    found = studio.read(job)
    assert (found["status"], found["failedDocuments"]) == ("failed", [])
    assert found["progress"]["docsComplete"] == 16
    assert len(found["artifacts"]) == 48
