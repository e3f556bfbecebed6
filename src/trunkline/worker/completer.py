"""Records ends of attempts in batches: ends that arrive during one call form the next batch."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

from trunkline.db.call import Call
from trunkline.db.calls import steps, work
from trunkline.db.lasting import LastingConnection
from trunkline.errors import (
    DatabaseProblem,
    DatabaseUnreachable,
    Refusal,
    SchemaError,
    TrunklineError,
)
from trunkline.model import GONE, Verdict
from trunkline.worker.part import Part
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster

__all__ = ["Completer"]

# Classes of SQLSTATE: a value that cannot be stored; a value that is too complex.
_ABOUT_THE_DATA: Final = frozenset({"22", "54"})
# A larger batch would hold its locks for too long.
_LARGEST_BATCH: Final = 1000


class Completer(Part):
    """Keeps each end until the server has recorded it; a failed call is repeated unchanged."""

    name = "completer"

    def __init__(self, dsn: str, worker: str, roster: Roster) -> None:
        super().__init__()
        self._connection = LastingConnection(dsn, name="trunkline completer")
        self._worker = worker
        self._roster = roster
        self._reports: list[Report] = []
        self._arrived = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self.counts = dict.fromkeys(End, 0)
        # Attempts whose end came too late: another attempt owns the job, or the job is gone.
        self.stale = 0

    def __len__(self) -> int:
        return len(self._reports)

    def add(self, report: Report) -> None:
        """Add an end to the next batch."""
        self._reports.append(report)
        if len(self._reports) == 1:
            self._arrived.set()
            self._empty.clear()

    async def drained(self) -> None:
        """Wait until everything is recorded."""
        await self._empty.wait()

    async def connect(self) -> None:
        """Connect before the first job ends: after a schema upgrade the server might refuse us."""
        with contextlib.suppress(TrunklineError):
            await self._connection.is_pooled()

    def interrupt(self) -> None:
        """Wake a turn that waits, so that it ends."""
        self._arrived.set()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Record the ends in the list; each stays there until the server has answered."""
        await self._arrived.wait()
        while self._reports:
            batch = self._reports[:_LARGEST_BATCH]
            end = batch[0].end
            same = [report for report in batch if report.end is end]
            if end in {End.RELEASE, End.HAND_BACK, End.SNOOZE}:
                # A call takes one reason for all its jobs.
                same = [report for report in same if report.reason == batch[0].reason]
            await self._record(end, same)
        self._arrived.clear()
        self._empty.set()

    async def _record(self, end: End, reports: Sequence[Report]) -> None:
        try:
            verdicts = await self._connection.run(_call(end, self._worker, reports))
        except Exception as error:
            if not _is_final(error):
                raise
            if len(reports) > 1:
                # One end makes the batch fail. Record them one by one to find it.
                for report in reports:
                    await self._record(end, [report])
                return
            await self._bury(reports[0], error)
            return
        self._settle(end, reports, verdicts)

    async def _bury(self, report: Report, refusal: Exception) -> None:
        """Make the job dead, because the engine refuses its end, such as a result too large."""
        self.log.error(
            "the end of job %s was refused: %s",
            report.job.job_id,
            refusal,
            extra=_log_fields(report),
        )
        error = {"type": type(refusal).__qualname__, "message": str(refusal)}
        if isinstance(refusal, TrunklineError):
            error["code"] = refusal.code
        failed = Report(report.job, End.FAIL, error=error, retryable=False)
        verdicts: list[Verdict] = []
        try:
            verdicts = await self._connection.run(_call(End.FAIL, self._worker, [failed]))
        except Exception as second_refusal:
            if not _is_final(second_refusal):
                raise
            self.log.exception(
                "job %s is left to its lease", report.job.job_id, extra=_log_fields(report)
            )
        self._drop([report])
        self._settle(End.FAIL, [failed], verdicts)

    def _drop(self, reports: Sequence[Report]) -> None:
        done = {id(report) for report in reports}
        self._reports = [report for report in self._reports if id(report) not in done]

    def _settle(self, end: End, reports: Sequence[Report], verdicts: Sequence[Verdict]) -> None:
        self._drop(reports)
        cancelled = [verdict for verdict in verdicts if verdict.verdict == "cancel"]
        self.counts[end] += len(reports) - len(cancelled)
        self.counts[End.CANCEL] += len(cancelled)
        self._roster.remove([report.job for report in reports])
        if end is End.HAND_OVER:
            self._log_handover(reports, verdicts)
        for verdict in cancelled:
            self.log.info(
                "job %s was cancelled while it ran; the result of attempt %d was dropped",
                verdict.job_id,
                verdict.attempt,
                extra={"job_id": str(verdict.job_id), "attempt": verdict.attempt},
            )
        for verdict in verdicts:
            if verdict.verdict == "lost":
                self.stale += 1
                text = (
                    "the server has no job %s; the end of attempt %d was refused. It was discarded,"
                    " or the server lost transactions, as in an asynchronous failover"
                    if verdict.state == GONE
                    else "job %s was taken over before attempt %d ended; its end was refused"
                )
                self.log.warning(
                    text,
                    verdict.job_id,
                    verdict.attempt,
                    extra={"job_id": str(verdict.job_id), "attempt": verdict.attempt},
                )

    def _log_handover(self, reports: Sequence[Report], verdicts: Sequence[Verdict]) -> None:
        by_job = {report.job.job_id: report for report in reports}
        for verdict in verdicts:
            report = by_job[verdict.job_id]
            error = report.error or {}
            if verdict.other_worker is not None:
                self.log.warning(
                    "attempt %d of %s was handed back: %s does not fit the code of this worker;"
                    " worker %s has another version of the task",
                    verdict.attempt,
                    report.job.task,
                    error.get("result") or f"field {error.get('field')} of the payload",
                    verdict.other_worker,
                    extra=_log_fields(report),
                )
            elif verdict.verdict == "ok":
                self.log.warning(
                    "attempt %d of %s failed: %s: %s",
                    verdict.attempt,
                    report.job.task,
                    error.get("type"),
                    error.get("message"),
                    extra=_log_fields(report),
                )


def _is_final(error: Exception) -> bool:
    """Whether the same call would always fail, and block every end behind it."""
    if isinstance(error, SchemaError):
        # The schema refused the connection, whatever the end is.
        return False
    if isinstance(error, (DatabaseProblem, DatabaseUnreachable)):
        sqlstate = getattr(error.__cause__, "sqlstate", None)
        return sqlstate is not None and sqlstate[:2] in _ABOUT_THE_DATA
    # Any other error was raised in this process, while the call was built.
    return isinstance(error, Refusal) or not isinstance(error, TrunklineError)


def _call(  # noqa: PLR0911 - a table
    end: End, worker: str, reports: Sequence[Report]
) -> Call[list[Verdict]]:
    jobs = [report.job.job_id for report in reports]
    attempts = [report.job.attempt for report in reports]
    match end:
        case End.COMPLETE:
            results = [report.result for report in reports]
            return work.complete(worker, jobs, attempts, results if any(results) else None)
        case End.FAIL:
            return work.fail(
                worker,
                jobs,
                attempts,
                errors=[report.error for report in reports],
                retryable=[report.retryable for report in reports],
                delays=[report.delay for report in reports],
            )
        case End.HAND_OVER:
            return work.hand_over(worker, jobs, attempts, [report.error for report in reports])
        case End.SNOOZE:
            delays = [report.delay for report in reports]
            return work.snooze(worker, jobs, attempts, delays, reports[0].reason)
        case End.SUSPEND:
            return steps.suspend(worker, jobs, attempts)
        case End.CANCEL:
            return work.acknowledge_cancel(
                worker, jobs, attempts, [report.reason for report in reports]
            )
        case End.RELEASE | End.HAND_BACK:
            reason = reports[0].reason or "handed back"
            unstarted = end is End.HAND_BACK
            return work.release(worker, jobs, attempts, reason, unstarted=unstarted)


def _log_fields(report: Report) -> dict[str, Any]:
    return {"job_id": str(report.job.job_id), "attempt": report.job.attempt}
