"""The bar and its phase never go back, whatever happens to the tasks."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from profiles.tests.studio.conftest import AUDIO, FINAL, PDF, TEXT, Studio

PHASES = ["queued", "calculating", "text", "pdf", "audio", "finalizing", "complete"]


class Bar:
    """Reads the bar again and again, and fails when it goes back."""

    def __init__(self, studio: Studio, job: Any) -> None:
        self._studio = studio
        self._job = job
        self.percent, self.phase = 0, "queued"

    def read(self) -> tuple[int, str]:
        shown = self._studio.progress(self._job)
        percent, phase = shown["percent"], shown["phase"]
        before = f"{self.percent} % {self.phase}"
        assert percent >= self.percent, f"{before} -> {percent} % {phase}"
        assert PHASES.index(phase) >= PHASES.index(self.phase), f"{before} -> {percent} % {phase}"
        self.percent, self.phase = percent, phase
        return percent, phase


@pytest.fixture
def job(studio: Studio) -> Any:
    studio.unlimited()
    return studio.order()


@pytest.fixture
def shown(studio: Studio, job: Any) -> Bar:
    return Bar(studio, job)


def fail(studio: Studio, tasks: list[Any]) -> None:
    for task in tasks:
        assert studio.fail(task.id) in {"pending", "failed"}


def lose(studio: Studio, tasks: list[Any]) -> None:
    studio.pass_time("181 seconds")
    assert studio.worker.value("select studio.reclaim_stale_tasks()") == len(tasks)


def cancel(studio: Studio, tasks: list[Any]) -> None:
    studio.producer.value("select studio.cancel_job(%s)", tasks[0].job_id)
    for task in tasks:
        assert not studio.beat(task.id)


@pytest.mark.parametrize("end", [fail, lose, cancel])
@pytest.mark.parametrize("count", [1, 16])
def test_the_bar_stays_at_10_when_the_texts_end_without_a_result(
    studio: Studio, job: Any, shown: Bar, count: int, end: Callable[..., None]
) -> None:
    """TA-40, TA-73: the charts are stored, then every text that runs is gone."""
    texts = studio.claim(TEXT, count=count)
    assert shown.read() == (5, "calculating")
    studio.store_base_data(texts[0])
    assert shown.read() == (10, "text")
    end(studio, texts)
    assert shown.read() == (10, "text")
    if end is not cancel:
        studio.pass_time("10 minutes")
        studio.claim(TEXT, count=16)
        assert shown.read() == (10, "text")
        assert studio.job(job).status == "processing"


def test_the_charts_count_without_any_phase_of_the_worker(
    studio: Studio, job: Any, shown: Bar
) -> None:
    """TA-38, TA-73: a worker in another language records them, and reports nothing else."""
    (text,) = studio.claim(TEXT, count=1)
    began = "select outcome from trunkline.begin_once('w1', %s, %s, 1, 'base_data')"
    assert studio.worker.value(began, text.id, text.attempt) == "run"
    assert shown.read() == (5, "calculating")
    recorded = "select trunkline.record_once('w1', %s, %s, 'base_data', '{\"charts\": []}')"
    assert studio.worker.value(recorded, text.id, text.attempt) == "ok"
    assert shown.read() == (10, "text")


def test_a_job_that_is_cancelled_before_any_claim_stays_at_0(
    studio: Studio, job: Any, shown: Bar
) -> None:
    """TA-40, TA-73: no worker has computed anything."""
    studio.producer.value("select studio.cancel_job(%s)", job)
    assert shown.read() == (0, "queued")


def test_a_failed_attempt_keeps_the_bar_of_a_job_that_is_cancelled_later(
    studio: Studio, job: Any, shown: Bar
) -> None:
    """TA-40: it was claimed once, so 5 percent stay."""
    fail(studio, studio.claim(TEXT, count=1))
    assert shown.read() == (5, "calculating")
    studio.producer.value("select studio.cancel_job(%s)", job)
    assert studio.job(job).status == "cancelled"
    assert shown.read() == (5, "calculating")


def test_a_job_that_is_cancelled_stays_in_its_phase(studio: Studio, job: Any, shown: Bar) -> None:
    """TA-40: while its tasks stop, and after."""
    studio.store_base_data(studio.claim(TEXT, count=1)[0])
    studio.claim(TEXT, count=1)
    running = [task for task in studio.tasks(job, TEXT) if task.status == "claimed"]
    (done, left) = running
    studio.complete(done.id, {}, [])
    assert shown.read() == (12, "text")
    (pdf,) = studio.claim(PDF)
    studio.producer.value("select studio.cancel_job(%s)", job)
    assert shown.read() == (12, "text")
    for task in (left, pdf):
        assert not studio.beat(task.id)
        assert shown.read() == (12, "text")
    assert studio.job(job).status == "cancelled"


@pytest.mark.parametrize("end", [fail, lose, cancel])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_bar_stays_when_the_last_task_ends_without_a_result(
    studio: Studio, job: Any, shown: Bar, steps: int, end: Callable[..., None]
) -> None:
    """TA-40, TA-72: it fails, is lost or is cancelled, and dies after three attempts."""
    studio.finish()
    assert shown.read() == (95, "finalizing")
    finals = studio.claim(FINAL)
    for number in range(steps):
        studio.step(finals[0], f"part {number}")
    assert shown.read() == (96 + steps, "finalizing")
    end(studio, finals)
    assert shown.read() == (96 + steps, "finalizing")
    if end is not cancel:
        for _ in range(2):
            studio.pass_time("10 minutes")
            end(studio, studio.claim(FINAL))
            assert shown.read() == (96 + steps, "finalizing")
        assert studio.job(job).status == "failed"


def test_the_bar_never_goes_back_in_a_random_course(studio: Studio, job: Any, shown: Bar) -> None:
    """TA-40, TA-41: workers that fail, disappear and complete in any order."""
    draw = Random(7)
    recorded = False
    while studio.job(job).status in {"queued", "processing"}:
        tasks = studio.claim(TEXT, PDF, AUDIO, FINAL, count=draw.randint(1, 9))
        shown.read()
        for task in tasks:
            if not recorded:
                studio.store_base_data(task)
                recorded = True
            # Third attempts succeed, so that every phase is reached.
            what = draw.choice(["complete", "fail", "lose"] if task.attempts < 3 else ["complete"])
            if what == "complete":
                studio.complete(task.id, *studio.product(task))
            elif what == "fail":
                studio.fail(task.id)
            shown.read()
        studio.pass_time("6 minutes")
        studio.worker.value("select studio.reclaim_stale_tasks()")
        shown.read()
    assert shown.read() == (100, "complete")
