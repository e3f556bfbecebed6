"""What handlers reach of their worker, and handlers that do not end; without a database."""

import asyncio
import logging
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tests.worker.scene import a_job, held_job
from trunkline import Trunkline
from trunkline.errors import AttemptCancelled, InvalidTask, StaleAttempt
from trunkline.model import Cancel
from trunkline.worker import backends, entry, process_child, process_pool
from trunkline.worker.backends import (
    LoopBackend,
    ThreadBackend,
    cancel_raised,
    complete_call,
    judge_progress,
    result_in_transaction,
)
from trunkline.worker.frames import Ended, Inputs, Run, Verdict
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Stop


@pytest.fixture
def app() -> Trunkline:
    made = Trunkline("postgresql://nobody@nowhere/none")

    @made.task
    def work() -> int:
        return 1

    return made


def test_the_answer_to_progress_may_stop_the_handler() -> None:
    job = a_job(attempt=3)
    for verdict in ("ok", "already"):
        judge_progress(job, verdict)
    with pytest.raises(Cancel) as cancelled:
        judge_progress(job, "cancel")
    assert cancelled.value.reason is None
    with pytest.raises(StaleAttempt) as stale:
        judge_progress(job, "lost")
    assert stale.value.message == "the attempt is no longer yours"
    assert stale.value.hint == "Stop the work and discard its result."
    assert stale.value.detail == {"job": str(job.job_id), "attempt": 3}


def test_a_refused_completion_raises_what_progress_would() -> None:
    with pytest.raises(Cancel), cancel_raised():
        raise AttemptCancelled("x")
    with pytest.raises(KeyError), cancel_raised():
        raise KeyError("x")
    with cancel_raised():
        pass


def test_a_completion_has_the_result_that_the_handler_set(app: Trunkline) -> None:
    job, task = a_job(attempt=2), app.tasks["work"]
    for result, sent in ((None, [None]), (5, ["5"])):
        ctx: Any = SimpleNamespace(result=result)
        call = complete_call("w", job, result_in_transaction(task, ctx), None)
        assert call.parameters[0] == "w"
        assert call.parameters[3:] == (sent, True)
        assert job.job_id.bytes in call.parameters[1]


def test_a_thread_pauses_until_its_time_or_its_stop(
    app: Trunkline, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=100.0, pauses=[], meanwhile=lambda: None)

    def sleep(seconds: float) -> None:
        clock.pauses.append(seconds)
        clock.now += seconds
        clock.meanwhile()

    fake = SimpleNamespace(monotonic=lambda: clock.now, sleep=sleep)
    monkeypatch.setattr(backends, "time", fake)
    held = held_job()
    services: Any = SimpleNamespace(worker="w")
    backend = ThreadBackend(services, held, app.tasks["work"])
    assert backend.worker == "w"
    assert not backend.cancelled()
    backend.pause(0.25)
    assert clock.pauses == pytest.approx([0.1, 0.1, 0.05])
    stops = {Stop.LOST: StaleAttempt, Stop.CANCELLED: Cancel, Stop.SHUTDOWN: Cancel}
    for stop, raised in stops.items():
        held.stop = None

        def end(stop: Stop = stop) -> None:
            held.stop = stop

        clock.meanwhile = end
        clock.pauses.clear()
        with pytest.raises(raised):
            backend.pause(60.0)
        assert len(clock.pauses) == 1
        assert backend.cancelled()


async def test_each_kind_of_handler_has_its_own_block(app: Trunkline) -> None:
    services: Any = None
    held, task, ctx = held_job(), app.tasks["work"], None
    loop: Any = LoopBackend(services, held, task).transaction(ctx)  # type: ignore[arg-type]
    with pytest.raises(InvalidTask) as refused, loop:
        pass
    assert str(refused.value) == "`with ctx.transaction()` in an `async def` handler"
    assert refused.value.hint == "Write `async with`."
    thread: Any = ThreadBackend(services, held, task).transaction(ctx)  # type: ignore[arg-type]
    with pytest.raises(InvalidTask) as refused:
        await thread.__aenter__()
    assert str(refused.value) == "`async with ctx.transaction()` in a plain handler"
    assert refused.value.hint == "Write `with`."


def test_handlers_that_ignore_their_cancellation_do_not_keep_the_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    monkeypatch.setattr(logging, "shutdown", lambda: ended.append(-1))
    monkeypatch.setattr(entry, "_LAST_CALL", 0.05)
    loop = asyncio.new_event_loop()
    go = asyncio.Event()

    async def deaf() -> None:
        while not go.is_set():
            try:
                await go.wait()
            except asyncio.CancelledError:
                continue

    async def polite() -> None:
        await go.wait()

    try:
        entry._end_stubborn_handlers(loop, 7)  # noqa: SLF001
        assert ended == []
        first = loop.create_task(polite())
        loop.run_until_complete(asyncio.sleep(0))
        entry._end_stubborn_handlers(loop, 7)  # noqa: SLF001
        assert (first.cancelled(), ended) == (True, [])
        second = loop.create_task(deaf())
        loop.run_until_complete(asyncio.sleep(0))
        entry._end_stubborn_handlers(loop, 7)  # noqa: SLF001
        assert ended == [-1, 7]
        assert caplog.messages == ["1 handler ignored cancellation; exiting anyway"]
        go.set()
        loop.run_until_complete(second)
    finally:
        loop.close()


def test_the_end_of_a_process_is_described_in_words() -> None:
    assert process_pool._exit_text(-9) == "signal 9"  # noqa: SLF001
    assert process_pool._exit_text(0) == "exit code 0"  # noqa: SLF001
    assert process_pool._exit_text(3) == "exit code 3"  # noqa: SLF001


def test_the_report_of_a_process_is_taken_as_it_is() -> None:
    held = held_job()
    said = Ended("snooze", "1", {"a": 1}, retryable=False, delay=2.0, reason="r")
    assert process_pool._report(held, said) == Report(  # noqa: SLF001
        held.job, End.SNOOZE, "1", {"a": 1}, retryable=False, delay=2.0, reason="r"
    )
    with pytest.raises(StaleAttempt):
        process_pool._report(held, Ended())  # noqa: SLF001


class Parent:
    """The worker at the other end."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.heard: list[Any] = []

    def send(self, message: Any) -> None:
        self.heard.append(message)

    def next(self) -> Any:
        return self.answer


def test_a_process_reports_to_its_worker_and_obeys_it(monkeypatch: pytest.MonkeyPatch) -> None:
    job = a_job()
    order = Run("m", "n", "w", job, Inputs(job.payload))

    def backend(answer: Any) -> Any:
        parent: Any = Parent(answer)
        means: Any = None
        return process_child._ChildBackend(parent, means, order)  # noqa: SLF001

    good = backend(Verdict("ok"))
    assert (good.worker, good.cancelled()) == ("w", False)
    good.progress(5, "m", "p")
    assert [type(one).__name__ for one in good._parent.heard] == ["Progress"]  # noqa: SLF001
    with pytest.raises(Cancel):
        backend(Verdict("cancel")).progress(None, None, None)
    with pytest.raises(Exception, match=r"^The worker answered 5$"):
        backend(5).progress(None, None, None)
    ended = process_child._ended  # noqa: SLF001
    report = Report(job, End.FAIL, "1", {"a": 1}, retryable=False, delay=2.0, reason="r")
    expected = Ended("fail", "1", {"a": 1}, retryable=False, delay=2.0, reason="r")
    assert ended(report, good) == expected
    assert ended(None, good) == Ended()
    good.in_transaction = True
    assert ended(report, good) == Ended("complete", in_transaction=True)


def test_a_process_is_stopped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = threading.Event()
    monkeypatch.setattr(process_child, "_stopped", stopped)
    with pytest.raises(Cancel, match="asked to stop"):
        process_child._stop(15, None)  # noqa: SLF001
    assert stopped.is_set()
    process_child._stop(15, None)  # noqa: SLF001
