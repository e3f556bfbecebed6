"""Changes of many jobs, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable

from trunkline.db.call import Call
from trunkline.model import BulkChange, BulkProgress
from trunkline.operate._async.session import AsyncSession

__all__ = ["in_batches"]


async def in_batches(
    session: AsyncSession,
    call: Callable[[str | None], Call[BulkChange]],
    cursor: str | None,
    reason: str | None,
) -> AsyncIterator[BulkProgress]:
    """Run the call with the cursor of the batch before until no job is left."""
    jobs = 0
    outcomes: Counter[str] = Counter()
    while True:
        change = await session.run(call(cursor), reason=reason)
        jobs += change.jobs
        outcomes.update(change.outcomes)
        cursor = change.next
        yield BulkProgress(jobs, dict(outcomes), change.job_ids, cursor)
        if cursor is None:
            return
