"""Searches for jobs by a filter."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, Row, json_text, plain_text
from trunkline.db.calls.job_columns import LISTED
from trunkline.db.calls.read import LIST_NAMES, job_of
from trunkline.model import FoundJobs, JobState, StateCount

__all__ = ["count_jobs", "resolve_job", "search_jobs"]

_SEARCH: Final[LiteralString] = (
    "select p.next, "
    + LISTED
    + """
from trunkline.search_jobs(
  p_filter => %s::text::jsonb, p_limit => %s::integer, p_cursor => %s
) as p
left join lateral unnest(p.jobs) as j on true
order by j.job_id desc
"""
)


def search_jobs(
    job_filter: Mapping[str, Any], limit: int, cursor: str | None = None
) -> Call[FoundJobs]:
    """Return jobs that match a filter, newest first, without their bodies."""

    def decode(rows: Sequence[Row]) -> FoundJobs:
        jobs = [job_of(LIST_NAMES, row[1:]) for row in rows if row[1] is not None]
        return FoundJobs(jobs, rows[0][0])

    return Call(_SEARCH, (json_text(job_filter), limit, cursor), decode)


def count_jobs(job_filter: Mapping[str, Any]) -> Call[list[StateCount]]:
    """Count the jobs that match a filter by state, each number up to 10,000."""

    def decode(rows: Sequence[Row]) -> list[StateCount]:
        return [StateCount(JobState(state), jobs, more) for state, jobs, more in rows]

    return Call(
        "select state, jobs, more from trunkline.count_jobs(p_filter => %s::text::jsonb)",
        (json_text(job_filter),),
        decode,
    )


def resolve_job(prefix: str, limit: int) -> Call[list[UUID]]:
    """Return the ids that begin with a prefix, newest first."""
    return Call(
        "select job_id from trunkline.resolve_job(p_prefix => %s, p_limit => %s::integer)"
        " as j (job_id)",
        (plain_text(prefix), limit),
        lambda rows: [row[0] for row in rows],
    )
