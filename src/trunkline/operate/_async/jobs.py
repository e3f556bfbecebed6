"""Jobs as an operator sees them: find, count, show, explain, and change."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Final
from uuid import UUID

from trunkline.db.call import Call
from trunkline.db.calls import bulk, produce, read, search
from trunkline.errors import UnknownJob
from trunkline.model import (
    BulkAction,
    BulkChange,
    BulkPreview,
    BulkProgress,
    ChangedJob,
    Enqueued,
    Explanation,
    FoundJobs,
    Job,
    JobFilter,
    JobState,
    StateCount,
)
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id

__all__ = ["AsyncOperatedJobs"]

_EVERY_JOB = JobFilter()
_PAGE: Final = 500
# Jobs in one transaction.
_BATCH: Final = 1000
_SAMPLE: Final = 10
_WAITING: Final = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)
# States that an action changes, and those that it changes only if the filter names them.
_STATES: Final[dict[BulkAction, tuple[tuple[JobState, ...], tuple[JobState, ...]]]] = {
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
            raise UnknownJob(
                "unknown job",
                hint="Check the id; ended jobs are kept for the retention of their kind.",
                detail={"job": str(job), "server": self._session.pool.address},
            )
        return found

    async def explain(self, job: UUID | str) -> list[Explanation]:
        """Return why a job is not running, and until when."""
        return await self._session.run(read.explain(as_job_id(job)))

    async def cancel(self, job: UUID | str, *, reason: str | None = None) -> ChangedJob:
        """Cancel a waiting job at once, or ask the worker of a running one to stop."""
        return await self._session.run(produce.cancel(as_job_id(job), reason), reason=reason)

    async def retry(self, job: UUID | str, *, reason: str | None = None) -> Enqueued:
        """Run a dead letter again under its id, or a finished job as a new one."""
        return await self._session.run(produce.retry(as_job_id(job)), reason=reason)

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
        return self._in_batches(
            lambda place: bulk.cancel_jobs(
                document, reason=reason, limit=batch, cursor=place, all_jobs=all_jobs
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
        """Run every dead letter that matches again, as `cancel_matching` goes through jobs.

        Finished jobs are run again, as new jobs, only if the filter names their states.
        """
        document = job_filter.as_json()
        return self._in_batches(
            lambda place: bulk.retry_jobs(document, limit=batch, cursor=place, all_jobs=all_jobs),
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
        """Change the priority of every waiting job that matches, as `cancel_matching` does."""
        document = job_filter.as_json()
        return self._in_batches(
            lambda place: bulk.reprioritise_jobs(
                document, priority, limit=batch, cursor=place, all_jobs=all_jobs
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
        """Delete every dead letter that matches permanently, as `cancel_matching` goes on."""
        document = job_filter.as_json()
        return self._in_batches(
            lambda place: bulk.discard_jobs(
                document, reason=reason, limit=batch, cursor=place, all_jobs=all_jobs
            ),
            cursor,
            reason,
        )

    async def preview(
        self, action: BulkAction, job_filter: JobFilter, *, sample: int = _SAMPLE
    ) -> BulkPreview:
        """Return what a bulk action would change, and change nothing."""
        usual, named = _STATES[action]
        states = (
            usual
            if job_filter.state is None
            else [state for state in _states(job_filter) if state in (*usual, *named)]
        )
        if not states:
            return BulkPreview([], [])
        restricted = replace(job_filter, state=list(states))
        counts = await self.count(restricted)
        page = await self.find(restricted, limit=sample)
        while not page.jobs and page.next is not None:
            page = await self.find(restricted, limit=sample, cursor=page.next)
        return BulkPreview(counts, page.jobs)

    async def _in_batches(
        self,
        call: Callable[[str | None], Call[BulkChange]],
        cursor: str | None,
        reason: str | None,
    ) -> AsyncIterator[BulkProgress]:
        jobs = 0
        outcomes: Counter[str] = Counter()
        while True:
            change = await self._session.run(call(cursor), reason=reason)
            jobs += change.jobs
            outcomes.update(change.outcomes)
            cursor = change.next
            yield BulkProgress(jobs, dict(outcomes), change.job_ids, cursor)
            if cursor is None:
                return


def _states(job_filter: JobFilter) -> list[JobState]:
    state = job_filter.state
    names = [state] if isinstance(state, str) else list(state or ())
    return [JobState(name) for name in names]
