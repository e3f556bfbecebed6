"""Recent activity, for following the queue like a log."""

from collections.abc import Sequence
from datetime import datetime

from trunkline.db.call import Call, Row
from trunkline.model import Event, RecentJob, Recently

__all__ = ["recently"]


def recently(
    since: datetime, *, task: str | None, queue: str | None, most: int | None
) -> Call[Recently]:
    """Return events and jobs created, claimed or ended since then: the newest `most` of each."""
    return Call(
        "select at, kind, job_id, state, task, queue, tenant, attempt, created_at, run_at,"
        " claimed_at, finished_at, worker, reason, last_error, detail"
        " from trunkline.recent_activity(p_since => %s::timestamptz, p_task => %s, p_queue => %s,"
        " p_limit => %s::integer)",
        (since, task, queue, most),
        _read,
    )


def _read(rows: Sequence[Row]) -> Recently:
    jobs, events = [], []
    # The first row has the engine's time.
    for row in rows[1:]:
        if row[0] is None:
            jobs.append(RecentJob._make(row[2:15]))
        else:
            events.append(Event._make((*row[0:8], row[12], row[15])))
    return Recently(rows[0][0], jobs, events)
