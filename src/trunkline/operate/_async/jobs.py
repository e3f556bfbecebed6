"""Jobs as an operator sees them: find, count, show, explain, and change."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from trunkline.db.calls import produce, read, search
from trunkline.errors import UnknownJob
from trunkline.model import (
    ChangedJob,
    Enqueued,
    Explanation,
    FoundJobs,
    Job,
    JobFilter,
    StateCount,
)
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id

__all__ = ["AsyncOperatedJobs"]

_EVERY_JOB = JobFilter()
_PAGE = 500


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
