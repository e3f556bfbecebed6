"""Dead letters: group them by error, edit and replay them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from trunkline.db.calls import bulk, dead, produce, read, search
from trunkline.errors import UnknownJob
from trunkline.model import (
    ChangedJob,
    DeadLetterGroup,
    Enqueued,
    FoundJobs,
    JobFilter,
    JobState,
    PacedReplay,
)
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id
from trunkline.operate.pace import Pace, ReplayTally
from trunkline.operate.payload_check import HandledTask, check_payload

__all__ = ["AsyncDeadLetters"]

_EVERY_JOB = JobFilter()


class AsyncDeadLetters:
    """Jobs that used up their attempts or were refused for good; `operator.dead`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def find(
        self, job_filter: JobFilter = _EVERY_JOB, *, limit: int = 100, cursor: str | None = None
    ) -> FoundJobs:
        """Return a page of dead letters that match, as `operator.jobs.find` does for all jobs."""
        document = replace(job_filter, state=JobState.DEAD).as_json()
        return await self._session.run(search.search_jobs(document, limit, cursor))

    async def groups(
        self, job_filter: JobFilter = _EVERY_JOB, *, limit: int = 100
    ) -> list[DeadLetterGroup]:
        """Return dead letters grouped by error, the largest group first."""
        return await self._session.run(dead.dead_letter_groups(job_filter.as_json(), limit))

    async def acknowledge(self, job: UUID | str, *, reason: str | None = None) -> ChangedJob:
        """Mark a dead letter as seen; its retention starts then."""
        return await self._session.run(produce.acknowledge(as_job_id(job)), reason=reason)

    async def retry_edited(
        self,
        job: UUID | str,
        payload: Mapping[str, Any],
        *,
        task: HandledTask | None = None,
        reason: str | None = None,
    ) -> Enqueued:
        """Run a dead letter again with another payload.

        The engine refuses a payload that is no object, is too large or lacks a key of the task's
        limits. With `task`, the payload is also checked against the parameters of its handler.
        """
        job_id = as_job_id(job)
        if task is not None:
            found = await self._session.run(read.job(job_id))
            if found is not None:
                check_payload(task, found.task, payload)
        return await self._session.run(dead.retry_edited(job_id, payload), reason=reason)

    async def replay(
        self,
        job_filter: JobFilter,
        *,
        rate: float,
        stop_at: float | None = None,
        at_least: int = 20,
        reason: str | None = None,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[PacedReplay]:
        """Replay dead letters that match, `rate` per second; yield how it stands after each batch.

        With `stop_at=0.1` it stops when more than 10 % of the replayed jobs have failed again, once
        `at_least` jobs were replayed. Each batch is one transaction; to stop, leave the loop. If no
        dead letter matches, it raises UnknownJob.
        """
        pace, tally = Pace(rate), ReplayTally(stop_at, at_least)
        document = replace(job_filter, state=JobState.DEAD).as_json()
        first = True
        while True:
            started = time.monotonic()
            change = await self._session.run(
                bulk.retry_jobs(document, limit=pace.batch, cursor=cursor, all_jobs=all_jobs),
                reason=reason,
            )
            cursor = change.next
            if first and change.jobs == 0 and cursor is None:
                raise UnknownJob(
                    "no dead letter matches the filter",
                    hint="List groups of dead letters with operator.dead.groups().",
                    detail={"filter": document},
                )
            first = first and change.jobs == 0
            tally.add(change)
            await self._settle(tally)
            yield tally.progress(cursor)
            if cursor is None or tally.must_stop():
                return
            if change.jobs:
                # A search that found nothing yet is continued at once.
                await asyncio.sleep(max(0.0, started + pace.interval - time.monotonic()))
                await self._settle(tally)
                if tally.must_stop():
                    yield tally.progress(cursor)
                    return

    async def _settle(self, tally: ReplayTally) -> None:
        asked = tally.open_jobs()
        if asked:
            document = JobFilter(job_ids=asked).as_json()
            page = await self._session.run(search.search_jobs(document, len(asked)))
            tally.settle(asked, page.jobs)
