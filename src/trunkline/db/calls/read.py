"""Looking at jobs."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, LiteralString, NamedTuple
from uuid import UUID

from trunkline.db.call import Call, Row, rows_of
from trunkline.db.calls.job_columns import DETAIL, LISTED
from trunkline.model import Explanation, Job, JobState

__all__ = [
    "LIST_NAMES",
    "JobPage",
    "detailed_jobs",
    "explain",
    "find_jobs",
    "job",
    "job_of",
    "list_jobs",
]

_DETAIL: Final[LiteralString] = "select " + DETAIL
_DETAIL_NAMES: Final = tuple(field.name for field in fields(Job))
_LIST: Final[LiteralString] = (
    "select "
    + LISTED
    + """
from trunkline.list_jobs(
  p_states => %s::text[], p_task => %s, p_queue => %s, p_tenant => %s, p_limit => %s::integer,
  p_before => %s::uuid
)
"""
)
_FIND: Final[LiteralString] = (
    "select p.next, "
    + LISTED
    + """
from trunkline.find_jobs(
  p_states => %s::text[], p_task => %s, p_queue => %s, p_tenant => %s, p_limit => %s::integer,
  p_before => %s::uuid
) as p
left join lateral unnest(p.jobs) as j on true
order by j.job_id desc
"""
)
# Attributes of Job in the order of the columns.
LIST_NAMES: Final = ["id", *LISTED.split(", ")[1:]]


class JobPage(NamedTuple):
    """Jobs, newest first, and the id before which the next page starts; None after the last."""

    jobs: list[Job]
    next: UUID | None


def job(job_id: UUID) -> Call[Job | None]:
    """One job wherever it is, with its bodies and the errors of its attempts; None if unknown."""

    def decode(rows: Sequence[Row]) -> Job | None:
        return job_of(_DETAIL_NAMES, rows[0]) if rows else None

    return Call(_DETAIL + " from trunkline.job(p_job => %s::uuid)", (job_id,), decode)


def detailed_jobs(ids: LiteralString) -> Call[list[Job]]:
    """The same of every job whose id a query gives."""
    return Call(
        _DETAIL + " from (" + ids + ") as asked (asked)"
        " cross join lateral trunkline.job(p_job => asked.asked)",
        (),
        lambda rows: [job_of(_DETAIL_NAMES, row) for row in rows],
    )


def list_jobs(
    *,
    states: Sequence[JobState] | None,
    task: str | None,
    queue: str | None,
    tenant: str | None,
    limit: int,
    before: UUID | None,
) -> Call[list[Job]]:
    """Jobs, newest first, without their bodies."""
    names = None if states is None else [str(state) for state in states]
    return Call(
        _LIST,
        (names, task, queue, tenant, limit, before),
        lambda rows: [job_of(LIST_NAMES, row) for row in rows],
    )


def find_jobs(
    *,
    states: Sequence[JobState] | None,
    task: str | None,
    queue: str | None,
    tenant: str | None,
    limit: int,
    before: UUID | None,
) -> Call[JobPage]:
    """Return the same from a bounded search, so a page may be short although more jobs match."""
    names = None if states is None else [str(state) for state in states]

    def decode(rows: Sequence[Row]) -> JobPage:
        jobs = [job_of(LIST_NAMES, row[1:]) for row in rows if row[1] is not None]
        return JobPage(jobs, rows[0][0])

    return Call(_FIND, (names, task, queue, tenant, limit, before), decode)


def explain(job_id: UUID) -> Call[list[Explanation]]:
    """Why a job is not running, and until when."""
    return Call(
        "select reason, until, detail from trunkline.explain(p_job => %s::uuid)",
        (job_id,),
        rows_of(Explanation),
    )


def job_of(names: Sequence[str], row: Row) -> Job:
    """Make a job of a row with these columns."""
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    values["state"] = JobState(values["state"])
    values["tags"] = tuple(values["tags"] or ())
    if "errors" in values:
        values["errors"] = tuple(values["errors"] or ())
    return Job(**values)
