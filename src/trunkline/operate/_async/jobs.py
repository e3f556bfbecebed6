"""Jobs for operators: find, count, show, explain and change them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from trunkline.db.calls import bulk, produce, quotas, read, search, steps
from trunkline.errors import InvalidArgument, UnknownJob
from trunkline.model import (
    BulkAction,
    BulkPreview,
    BulkProgress,
    ChangedJob,
    Enqueued,
    Explanation,
    FoundJobs,
    Job,
    JobFilter,
    JobState,
    JobStep,
    JobUsage,
    StateCount,
)
from trunkline.operate._async.batches import in_batches
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id, id_or_prefix

__all__ = ["AsyncOperatedJobs"]

_EVERY_JOB = JobFilter()
_PAGE: Final = 500
# The number of jobs in one transaction.
_BATCH: Final = 1000
_SAMPLE: Final = 10
# Ids that an error about an ambiguous prefix lists.
_CANDIDATES: Final = 5
_WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)
# States that an action changes, and those that it changes only if the filter names them.
_STATES: Final[dict[BulkAction, tuple[tuple[JobState, ...], tuple[JobState, ...]]]] = {
    "acknowledge": ((JobState.DEAD,), ()),
    "cancel": ((*_WAITING, JobState.RUNNING), ()),
    "discard": ((JobState.DEAD,), ()),
    "reprioritise": (_WAITING, ()),
    "retry": ((JobState.DEAD,), (JobState.COMPLETED, JobState.CANCELLED)),
}


class AsyncOperatedJobs:
    """All jobs that the operator may see; `operator.jobs`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def find(
        self, job_filter: JobFilter = _EVERY_JOB, *, limit: int = 100, cursor: str | None = None
    ) -> FoundJobs:
        """Return a page of jobs that match, newest first, without payloads.

        Pass `next` of a page as the cursor of the next one. A page may be short or empty although
        `next` is set, because one call reads at most the newest 20,000 jobs of each kind.
        """
        call = search.search_jobs(job_filter.as_json(), limit, cursor)
        return await self._session.run(call)

    async def find_all(
        self, job_filter: JobFilter = _EVERY_JOB, *, cursor: str | None = None
    ) -> AsyncIterator[Job]:
        """Yield every job that matches, newest first, page by page."""
        while True:
            page = await self.find(job_filter, limit=_PAGE, cursor=cursor)
            for job in page.jobs:
                yield job
            cursor = page.next
            if cursor is None:
                return

    async def count(self, job_filter: JobFilter = _EVERY_JOB) -> list[StateCount]:
        """Count the jobs that match by state, each number up to 10,000."""
        return await self._session.run(search.count_jobs(job_filter.as_json()))

    async def get(self, job: UUID | str) -> Job:
        """Return one job with its payload, its result and the errors of its attempts."""
        found = await self._session.run(read.job(as_job_id(job)))
        if found is None:
            raise self._unknown(job)
        return found

    async def resolve(self, job: UUID | str) -> UUID:
        """Return the id that begins with a prefix of 8 or more digits; dashes are optional.

        A whole id is returned without a query. If no job is found, it raises UnknownJob; if the
        prefix fits several jobs, InvalidArgument with some of their ids.
        """
        start = id_or_prefix(job)
        if isinstance(start, UUID):
            return start
        candidates = await self._session.run(search.resolve_job(start, _CANDIDATES))
        match candidates:
            case []:
                raise self._unknown(job)
            case [job_id]:
                return job_id
            case _:
                raise InvalidArgument(
                    "several jobs have an id that starts like this",
                    hint="Type more digits of the id.",
                    detail={"job": job, "candidates": ", ".join(map(str, candidates))},
                )

    async def explain(self, job: UUID | str) -> list[Explanation]:
        """Return why a job is not running, and until when."""
        return await self._session.run(read.explain(as_job_id(job)))

    async def usage(self, job: UUID | str) -> Sequence[JobUsage]:
        """Return what a job used, by attempt and limit."""
        return await self._session.run(quotas.usage_of_job(as_job_id(job)))

    async def cancel(self, job: UUID | str, *, reason: str | None = None) -> ChangedJob:
        """Cancel a waiting job at once, or ask the worker of a running one to stop."""
        return await self._session.run(produce.cancel(as_job_id(job), reason), reason=reason)

    async def retry(
        self, job: UUID | str, *, fresh: bool = False, reason: str | None = None
    ) -> Enqueued:
        """Run a dead letter again under its id, or a finished job as a new one.

        A dead letter keeps its recorded steps; with `fresh`, all of them run again.
        """
        call = steps.retry_fresh if fresh else produce.retry
        return await self._session.run(call(as_job_id(job)), reason=reason)

    async def steps(self, job: UUID | str) -> list[JobStep]:
        """Return the recorded steps of a job, and what it waits for."""
        return await self._session.run(steps.job_steps(as_job_id(job)))

    async def reset_step(
        self, job: UUID | str, name: str, *, key: str | None = None, reason: str | None = None
    ) -> int:
        """Delete recorded steps of a job, so that the next attempt runs them again.

        All calls of the name, or one of them by its key. Returns how many were deleted.
        """
        call = steps.reset_step(as_job_id(job), name, key, reason)
        return await self._session.run(call, reason=reason)

    async def reprioritise(
        self, job: UUID | str, priority: int, *, reason: str | None = None
    ) -> ChangedJob:
        """Change the priority of a waiting job and move it to the end of that priority."""
        return await self._session.run(
            produce.reprioritise(as_job_id(job), priority), reason=reason
        )

    async def discard(self, job: UUID | str, *, reason: str | None = None) -> ChangedJob:
        """Delete a dead letter permanently."""
        return await self._session.run(produce.discard(as_job_id(job), reason), reason=reason)

    def cancel_matching(
        self,
        job_filter: JobFilter,
        *,
        reason: str | None = None,
        batch: int = _BATCH,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[BulkProgress]:
        """Cancel every job that matches, batch by batch; yield the progress after each.

        Each batch is one transaction, newest jobs first. To stop, leave the loop; to continue
        later, pass the last `cursor`. Jobs that are enqueued meanwhile are not touched. A filter
        that names nothing but states is refused unless `all_jobs` is true.
        """
        document = job_filter.as_json()
        return in_batches(
            self._session,
            lambda position: bulk.cancel_jobs(
                document, reason=reason, limit=batch, cursor=position, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    def retry_matching(
        self,
        job_filter: JobFilter,
        *,
        reason: str | None = None,
        batch: int = _BATCH,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[BulkProgress]:
        """Run every dead letter that matches again, in batches as `cancel_matching` does.

        Finished jobs are run again, as new jobs, only if the filter names their states.
        """
        document = job_filter.as_json()
        return in_batches(
            self._session,
            lambda position: bulk.retry_jobs(
                document, limit=batch, cursor=position, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    def reprioritise_matching(
        self,
        job_filter: JobFilter,
        priority: int,
        *,
        reason: str | None = None,
        batch: int = _BATCH,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[BulkProgress]:
        """Change the priority of every waiting job that matches, in batches."""
        document = job_filter.as_json()
        return in_batches(
            self._session,
            lambda position: bulk.reprioritise_jobs(
                document, priority, limit=batch, cursor=position, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    def discard_matching(
        self,
        job_filter: JobFilter,
        *,
        reason: str | None = None,
        batch: int = _BATCH,
        cursor: str | None = None,
        all_jobs: bool = False,
    ) -> AsyncIterator[BulkProgress]:
        """Delete every dead letter that matches permanently, in batches."""
        document = job_filter.as_json()
        return in_batches(
            self._session,
            lambda position: bulk.discard_jobs(
                document, reason=reason, limit=batch, cursor=position, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    async def preview(
        self, action: BulkAction, job_filter: JobFilter, *, sample: int = _SAMPLE
    ) -> BulkPreview:
        """Return what a bulk action would change, and change nothing."""
        default, optional = _STATES[action]
        states = (
            default
            if job_filter.state is None
            else [state for state in _states(job_filter) if state in (*default, *optional)]
        )
        if not states:
            return BulkPreview([], [])
        restricted = replace(job_filter, state=list(states))
        counts = await self.count(restricted)
        page = await self.find(restricted, limit=sample)
        while not page.jobs and page.next is not None:
            page = await self.find(restricted, limit=sample, cursor=page.next)
        return BulkPreview(counts, page.jobs)

    def _unknown(self, job: UUID | str) -> UnknownJob:
        return UnknownJob(
            "unknown job",
            hint="Check the id; ended jobs are kept for the retention of their kind.",
            detail={"job": str(job), "server": self._session.caller.address},
        )


def _states(job_filter: JobFilter) -> list[JobState]:
    state = job_filter.state
    names = [state] if isinstance(state, str) else list(state or ())
    return [JobState(name) for name in names]
