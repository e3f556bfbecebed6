"""Dead letters: group them by error, edit and replay them."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from trunkline.db.calls import bulk, dead, produce, read, search
from trunkline.errors import InvalidArgument, UnknownJob
from trunkline.model import (
    BulkProgress,
    ChangedJob,
    DeadLetterGroup,
    Enqueued,
    FoundJobs,
    JobFilter,
    JobState,
    PacedReplay,
)
from trunkline.operate._async.batches import in_batches
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id
from trunkline.operate.pace import Pace, ReplayTally
from trunkline.operate.payload_check import HandledTask, check_payload

__all__ = ["AsyncDeadLetters"]

_EVERY_JOB = JobFilter()
# Jobs in one transaction.
_BATCH: Final = 1000
_GROUP: Final = re.compile(r"[0-9a-f]{4,16}", re.ASCII)
_GROUP_DIGITS: Final = 16
# The most that one call returns.
_MOST_GROUPS: Final = 1000
# Groups that an error about an ambiguous start lists.
_CANDIDATES: Final = 5
# Seconds between two reports of a replay, so that a caller can leave it soon at any rate.
_TICK: Final = 1.0
# Seconds for which a replay waits for the jobs of its last batches.
_LAST_WAIT: Final = 10.0


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

    async def group(self, group: str) -> DeadLetterGroup:
        """Return one group, named by its fingerprint or the first 4 or more digits of it.

        If no dead letter is in such a group, or several groups begin like this, it raises
        InvalidArgument.
        """
        if not _GROUP.fullmatch(group):
            raise InvalidArgument(
                "neither an error group nor the start of one",
                hint="Pass the group, or at least its first 4 hexadecimal digits.",
                detail={"group": group},
            )
        whole = JobFilter(error_group=group) if len(group) == _GROUP_DIGITS else _EVERY_JOB
        rows = await self.groups(whole, limit=_MOST_GROUPS)
        matches = [row for row in rows if row.error_group.startswith(group)]
        if not matches:
            raise InvalidArgument(
                "no dead letter is in this error group",
                hint="List the groups with: trunkline dead groups",
                detail={"group": group, "server": self._session.caller.address},
            )
        if len(matches) > 1:
            names = ", ".join(row.error_group for row in matches[:_CANDIDATES])
            raise InvalidArgument(
                "several error groups start like this",
                hint="Type more digits of the group.",
                detail={"group": group, "candidates": names},
            )
        return matches[0]

    async def acknowledge(self, job: UUID | str, *, reason: str | None = None) -> ChangedJob:
        """Mark a dead letter as seen; its retention starts then."""
        return await self._session.run(produce.acknowledge(as_job_id(job)), reason=reason)

    def acknowledge_matching(
        self,
        job_filter: JobFilter,
        *,
        reason: str | None = None,
        batch: int = _BATCH,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[BulkProgress]:
        """Mark every dead letter that matches as seen; yield the progress after each batch.

        Each batch is one transaction, as in `operator.jobs.cancel_matching`. Dead letters that were
        seen before stay as they are and count as unchanged.
        """
        document = job_filter.as_json()
        return in_batches(
            self._session,
            lambda place: bulk.acknowledge_jobs(
                document, limit=batch, cursor=place, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    async def retry_edited(
        self,
        job: UUID | str,
        payload: Mapping[str, Any],
        *,
        task: HandledTask | None = None,
        reason: str | None = None,
    ) -> Enqueued:
        """Run a dead letter again with another payload.

        The engine refuses a payload that is not an object, is too large or lacks a key of the
        task's limits. With `task`, it is also checked against the parameters of the handler.
        """
        job_id = as_job_id(job)
        if task is not None:
            details = await self._session.run(read.job(job_id))
            if details is not None:
                check_payload(task, details.task, payload)
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
        """Replay dead letters that match, `rate` per second; yield the progress each second or so.

        With `stop_at=0.1` it stops when more than 10 % of the replayed jobs have failed again, once
        `at_least` jobs were replayed. After the last batch it waits for its jobs, for ten seconds
        at most; later failures do not count. Each batch is one transaction; to stop, leave the
        loop. If no dead letter matches, it raises UnknownJob.
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
            if tally.must_stop() or (cursor is None and stop_at is None):
                return
            if cursor is None:
                # Jobs of the last batches can still fail.
                pause = _LAST_WAIT
            elif change.jobs:
                pause = started + pace.interval - time.monotonic()
            else:
                # After a batch without matches the search continues at once.
                continue
            until = time.monotonic() + pause
            while (left := until - time.monotonic()) > 0:
                if cursor is None and not tally.open_jobs():
                    return
                await asyncio.sleep(min(left, _TICK))
                await self._settle(tally)
                yield tally.progress(cursor)
                if tally.must_stop():
                    return
            if cursor is None:
                return

    async def _settle(self, tally: ReplayTally) -> None:
        open_jobs = tally.open_jobs()
        if open_jobs:
            document = JobFilter(job_ids=open_jobs).as_json()
            page = await self._session.run(search.search_jobs(document, len(open_jobs)))
            tally.settle(open_jobs, page.jobs)
