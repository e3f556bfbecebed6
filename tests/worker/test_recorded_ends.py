"""Which call records which end, what is logged, and which errors are final; without a database."""

import asyncio
import logging
from typing import Any

import psycopg
import pytest

from tests.worker.engine import Engine
from tests.worker.scene import a_job, eventually
from trunkline.db.packed import Integers, Uuids
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseUnreachable,
    InvalidArgument,
    SchemaMissing,
    TrunklineError,
)
from trunkline.model import GONE, ClaimedJob, Verdict
from trunkline.worker.completer import Completer
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster


class Desk:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.engine = Engine(monkeypatch)
        for function in (
            *("complete", "fail", "hand_over", "snooze", "acknowledge_cancel", "release"),
        ):
            self.engine.say(function, [])
        self.roster = Roster()
        self.completer = Completer("", "w", self.roster)

    def jobs(self, count: int) -> list[ClaimedJob]:
        jobs = [a_job(attempt=number + 1) for number in range(count)]
        self.roster.add(jobs)
        return jobs

    async def record(self, *reports: Report) -> None:
        for report in reports:
            self.completer.add(report)
        await self.completer.turn()
        assert len(self.completer) == 0

    def counts(self) -> dict[End, int]:
        return {end: count for end, count in self.completer.counts.items() if count}


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Desk:
    return Desk(monkeypatch)


def _ids(jobs: list[ClaimedJob]) -> tuple[str, list[Any], list[int]]:
    return "w", [job.job_id for job in jobs], [job.attempt for job in jobs]


async def test_each_end_has_its_call_with_all_that_was_reported(desk: Desk) -> None:
    jobs = desk.jobs(2)
    worker, ids, attempts = _ids(jobs)
    errors = [{"message": "a"}, {"message": "b"}]
    texts = ['{"message":"a"}', '{"message":"b"}']
    await desk.record(
        Report(jobs[0], End.FAIL, error=errors[0], retryable=False, delay=2.0),
        Report(jobs[1], End.FAIL, error=errors[1]),
    )
    await desk.record(*(Report(job, End.COMPLETE) for job in jobs))
    await desk.record(Report(jobs[0], End.COMPLETE), Report(jobs[1], End.COMPLETE, result="1"))
    await desk.record(*(Report(j, End.SNOOZE, delay=1.0, reason="later") for j in jobs))
    await desk.record(
        Report(jobs[0], End.CANCEL, reason="no"),
        Report(jobs[1], End.CANCEL),
    )
    await desk.record(Report(jobs[0], End.RELEASE), Report(jobs[1], End.HAND_BACK, reason="early"))
    names = [name for name, _ in desk.engine.calls]
    assert names == [
        *("fail", "complete", "complete", "snooze", "acknowledge_cancel", "release", "release")
    ]
    sent = [parameters for _, parameters in desk.engine.calls]
    assert sent[0][:5] == (worker, ids, attempts, texts, [False, True])
    assert [span and span.total_seconds() for span in sent[0][5]] == [2.0, None]
    packed = ("w", Uuids.of(ids), Integers.of(attempts))
    assert sent[1] == (*packed, None, False)
    assert sent[2] == (*packed, [None, "1"], False)
    assert sent[3][4] == "later"
    assert sent[4] == (worker, ids, attempts, ["no", None])
    assert sent[5] == (worker, ids[:1], attempts[:1], "handed back", False)
    assert sent[6] == (worker, ids[1:], attempts[1:], "early", True)
    assert len(desk.roster) == 0


@pytest.mark.parametrize("end", [End.RELEASE, End.HAND_BACK, End.SNOOZE])
async def test_one_call_has_one_reason(desk: Desk, end: End) -> None:
    a, b, c = desk.jobs(3)
    await desk.record(
        Report(a, end, reason="x", delay=1.0),
        Report(b, end, reason="y", delay=1.0),
        Report(c, end, reason="x", delay=1.0),
    )
    assert [sent[1] for _, sent in desk.engine.calls] == [[a.job_id, c.job_id], [b.job_id]]


async def test_failures_with_several_reasons_are_one_call(desk: Desk) -> None:
    a, b = desk.jobs(2)
    await desk.record(
        Report(a, End.FAIL, error={}, reason="x"), Report(b, End.FAIL, error={}, reason="y")
    )
    assert desk.engine.taken() == ["fail"]


async def test_a_batch_is_bounded(desk: Desk) -> None:
    jobs = desk.jobs(1001)
    await desk.record(*(Report(job, End.FAIL, error={}) for job in jobs))
    assert [len(sent[1]) for _, sent in desk.engine.calls] == [1000, 1]
    assert desk.counts() == {End.FAIL: 1001}


async def test_verdicts_are_counted_and_logged(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    fine, cancelled, lost, gone = desk.jobs(4)
    desk.engine.say(
        "complete",
        [
            Verdict(cancelled.job_id, 2, "cancel", "cancelled", None),
            Verdict(lost.job_id, 3, "lost", "running", None),
            Verdict(gone.job_id, 4, "lost", GONE, None),
        ],
    )
    await desk.record(*(Report(job, End.COMPLETE) for job in (fine, cancelled, lost, gone)))
    assert desk.counts() == {End.COMPLETE: 3, End.CANCEL: 1}
    assert desk.completer.stale == 2
    said = [(one.levelno, one.getMessage()) for one in caplog.records]
    assert said == [
        (
            logging.INFO,
            (
                f"job {cancelled.job_id} was cancelled while it ran; the result of attempt 2 was"
                " dropped"
            ),
        ),
        (
            logging.WARNING,
            f"job {lost.job_id} was taken over before attempt 3 ended; its end was refused",
        ),
        (
            logging.WARNING,
            (
                f"the server has no job {gone.job_id}; the end of attempt 4 was refused. It was"
                " discarded, or the server lost transactions, as in an asynchronous failover"
            ),
        ),
    ]
    for record, job in zip(caplog.records, (cancelled, lost, gone), strict=True):
        fields: Any = record
        assert (fields.job_id, fields.attempt) == (str(job.job_id), job.attempt)


async def test_a_payload_that_does_not_fit_is_logged_with_workers_that_may_fit(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    a, b, c = desk.jobs(3)
    error = {"type": "PayloadMismatch", "message": "too many", "field": "x"}
    desk.engine.say(
        "hand_over",
        [
            Verdict(a.job_id, 1, "ok", "ready", None, "other"),
            Verdict(b.job_id, 2, "ok", "dead", None, None),
            Verdict(c.job_id, 3, "already", "dead", None, None),
        ],
    )
    await desk.record(
        Report(a, End.HAND_OVER, error=error),
        Report(b, End.HAND_OVER, error=error),
        Report(c, End.HAND_OVER),
    )
    assert [one.getMessage() for one in caplog.records] == [
        (
            "attempt 1 of work was handed back: field x of the payload does not fit the code of"
            " this worker; worker other has another version of the task"
        ),
        "attempt 2 of work failed: PayloadMismatch: too many",
    ]
    assert {one.levelno for one in caplog.records} == {logging.WARNING}


def _caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


_DATA = psycopg.errors.InvalidTextRepresentation("x")
_COMPLEX = psycopg.errors.ProgramLimitExceeded("x")


@pytest.mark.parametrize(
    ("error", "final"),
    [
        (SchemaMissing("x"), False),
        (ConnectionLost("x"), False),
        (DatabaseUnreachable("x"), False),
        (DatabaseProblem("x"), False),
        (_caused(DatabaseProblem("x"), psycopg.errors.DiskFull("x")), False),
        (_caused(DatabaseProblem("x"), _DATA), True),
        (_caused(DatabaseProblem("x"), _COMPLEX), True),
        (InvalidArgument("x"), True),
        (ValueError("x"), True),
        (TrunklineError("x"), False),
    ],
)
async def test_an_error_is_final_if_the_same_call_would_fail_again(
    desk: Desk, caplog: pytest.LogCaptureFixture, error: Exception, final: bool
) -> None:
    (job,) = desk.jobs(1)
    desk.engine.say("complete", error, [])
    desk.completer.add(Report(job, End.COMPLETE))
    if not final:
        with pytest.raises(type(error)):
            await desk.completer.turn()
        assert len(desk.completer) == len(desk.roster) == 1
        return
    await desk.completer.turn()
    assert len(desk.completer) == len(desk.roster) == 0
    (failed,) = [sent for name, sent in desk.engine.calls if name == "fail"]
    code = f',"code":"{error.code}"' if isinstance(error, TrunklineError) else ""
    assert failed[3] == [f'{{"type":"{type(error).__qualname__}","message":"{error}"{code}}}']
    assert failed[4] == [False]
    assert desk.counts() == {End.FAIL: 1}
    (said,) = caplog.records
    assert said.levelno == logging.ERROR
    assert said.getMessage() == f"the end of job {job.job_id} was refused: {error}"


async def test_one_end_that_is_refused_spoils_no_other(desk: Desk) -> None:
    a, b, c = desk.jobs(3)

    def answer(_: str, packed: bytes, *__: Any) -> list[Verdict]:
        if b.job_id.bytes in packed:
            raise InvalidArgument("bad")
        return []

    desk.engine.say("complete", answer)
    await desk.record(*(Report(job, End.COMPLETE) for job in (a, b, c)))
    assert desk.engine.taken() == ["complete", "complete", "complete", "fail", "complete"]
    assert desk.counts() == {End.COMPLETE: 2, End.FAIL: 1}
    assert len(desk.roster) == 0


async def test_an_end_refused_as_a_failure_too_is_dropped(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    (job,) = desk.jobs(1)
    desk.engine.say("complete", InvalidArgument("bad"))
    desk.engine.say("fail", ConnectionLost("gone"), InvalidArgument("worse"))
    desk.completer.add(Report(job, End.COMPLETE))
    with pytest.raises(ConnectionLost):
        await desk.completer.turn()
    assert len(desk.completer) == 1
    caplog.clear()
    await desk.completer.turn()
    assert len(desk.completer) == len(desk.roster) == 0
    assert caplog.records[-1].getMessage() == f"job {job.job_id} is left to its lease"


async def test_an_empty_list_waits_and_a_new_end_wakes_it(desk: Desk) -> None:
    a, b = desk.jobs(2)
    await asyncio.wait_for(desk.completer.drained(), 60)
    waiting = asyncio.ensure_future(desk.completer.turn())
    await asyncio.sleep(0)
    assert not waiting.done()
    desk.completer.add(Report(a, End.COMPLETE))
    draining = asyncio.ensure_future(desk.completer.drained())
    await asyncio.sleep(0)
    assert not draining.done()
    await asyncio.wait_for(waiting, 60)
    await asyncio.wait_for(draining, 60)
    # And once more: the signals were reset.
    waiting = asyncio.ensure_future(desk.completer.turn())
    await asyncio.sleep(0)
    assert not waiting.done()
    desk.completer.add(Report(b, End.COMPLETE))
    await asyncio.wait_for(waiting, 60)
    assert desk.counts() == {End.COMPLETE: 2}
    waiting = asyncio.ensure_future(desk.completer.turn())
    desk.completer.interrupt()
    await asyncio.wait_for(waiting, 60)


async def test_a_stopped_completer_ends(desk: Desk) -> None:
    desk.completer.start()
    (job,) = desk.jobs(1)
    desk.completer.add(Report(job, End.COMPLETE))
    await eventually(lambda: len(desk.completer) == 0, "it is recorded")
    await asyncio.wait_for(desk.completer.stop(), 60)
