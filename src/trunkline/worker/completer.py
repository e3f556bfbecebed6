"""Records ends of attempts, many at once: what gathers while one call is under way is the next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.lasting import LastingConnection
from trunkline.errors import ConnectionLost, DatabaseProblem, Refusal, TrunklineError
from trunkline.model import Verdict
from trunkline.worker.part import Part
from trunkline.worker.report import End, Report
from trunkline.worker.roster import Roster

__all__ = ["Completer"]

# Above it one call would hold its locks for too long.
_LARGEST_BATCH: Final = 1000


class Completer(Part):
    """A completion that fails is repeated as a completion; the work is not done again (TA-36)."""

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
        # Attempts whose end came too late: another attempt owns the job by now.
        self.stale = 0

    def __len__(self) -> int:
        return len(self._reports)

    def add(self, report: Report) -> None:
        """Take an end in; it is recorded soon."""
        self._reports.append(report)
        if len(self._reports) == 1:
            self._arrived.set()
            self._empty.clear()

    async def drained(self) -> None:
        """Wait until everything is recorded."""
        await self._empty.wait()

    def interrupt(self) -> None:
        """Let a waiting turn end."""
        self._arrived.set()

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def turn(self) -> None:
        """Record what is there; it stays in the list until the server has answered."""
        await self._arrived.wait()
        while self._reports:
            batch = self._reports[:_LARGEST_BATCH]
            end = batch[0].end
            same = [report for report in batch if report.end is end]
            await self._record(end, same)
            done = {id(report) for report in same}
            self._reports = [report for report in self._reports if id(report) not in done]
        self._arrived.clear()
        self._empty.set()

    async def _record(self, end: End, reports: Sequence[Report]) -> None:
        try:
            verdicts = await self._connection.run(_call(end, self._worker, reports))
        except (ConnectionLost, DatabaseProblem):
            raise
        except Refusal as refusal:
            if len(reports) > 1:
                # One of them spoils the batch: find it.
                for report in reports:
                    await self._record(end, [report])
                return
            await self._bury(reports[0], refusal)
            return
        self._settle(end, reports, verdicts)

    async def _bury(self, report: Report, refusal: TrunklineError) -> None:
        """The engine will never take this end (a result too large, say): the job is dead."""
        self.log.error(
            "the end of job %s was refused: %s", report.job.job_id, refusal, extra=_who(report)
        )
        error = {"type": type(refusal).__qualname__, "message": str(refusal), "code": refusal.code}
        failed = Report(report.job, End.FAIL, error=error, retryable=False)
        verdicts = await self._connection.run(_call(End.FAIL, self._worker, [failed]))
        self._settle(End.FAIL, [failed], verdicts)

    def _settle(self, end: End, reports: Sequence[Report], verdicts: Sequence[Verdict]) -> None:
        self.counts[end] += len(reports)
        self._roster.remove([report.job for report in reports])
        for verdict in verdicts:
            if verdict.verdict == "lost":
                self.stale += 1
                self.log.warning(
                    "job %s was taken over before attempt %d ended; its end was refused",
                    verdict.job_id,
                    verdict.attempt,
                    extra={"job_id": str(verdict.job_id), "attempt": verdict.attempt},
                )


def _call(end: End, worker: str, reports: Sequence[Report]) -> Call[list[Verdict]]:
    jobs = [report.job.job_id for report in reports]
    attempts = [report.job.attempt for report in reports]
    match end:
        case End.COMPLETE:
            results: list[str | None] | None = [report.result for report in reports]
            if not any(results or ()):
                results = None
            return work.complete(worker, jobs, attempts, results)
        case End.FAIL:
            return work.fail(
                worker,
                jobs,
                attempts,
                errors=[report.error for report in reports],
                retryable=[report.retryable for report in reports],
                delays=[report.delay for report in reports],
            )
        case End.SNOOZE:
            return work.snooze(worker, jobs, attempts, [report.delay or 0.0 for report in reports])
        case End.CANCEL:
            return work.acknowledge_cancel(
                worker, jobs, attempts, [report.reason for report in reports]
            )
        case End.RELEASE:
            return work.release(worker, jobs, attempts, reports[0].reason or "handed back")


def _who(report: Report) -> dict[str, Any]:
    return {"job_id": str(report.job.job_id), "attempt": report.job.attempt}
