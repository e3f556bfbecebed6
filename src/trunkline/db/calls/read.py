"""Calls that read jobs."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, Row, rows_of
from trunkline.db.calls.job_columns import DETAIL, LISTED
from trunkline.model import Explanation, Job, JobState

__all__ = [
    "DETAIL_NAMES",
    "LIST_NAMES",
    "detailed_jobs",
    "explain",
    "job",
    "job_of",
    "list_jobs",
]

_DETAIL: Final[LiteralString] = "select " + DETAIL
DETAIL_NAMES: Final = tuple(field.name for field in fields(Job))
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
# Attributes of Job in the order of the columns.
LIST_NAMES: Final = ["id", *LISTED.split(", ")[1:]]


def job(job_id: UUID) -> Call[Job | None]:
    """Return one job in any state with its bodies and the errors of its attempts, or None."""

    def decode(rows: Sequence[Row]) -> Job | None:
        return job_of(DETAIL_NAMES, rows[0]) if rows else None

    return Call(_DETAIL + " from trunkline.job(p_job => %s::uuid)", (job_id,), decode)


def detailed_jobs(ids: LiteralString) -> Call[list[Job]]:
    """Return every job whose id a query returns, with the same details as `job`."""
    return Call(
        _DETAIL + " from (" + ids + ") as asked (asked)"
        " cross join lateral trunkline.job(p_job => asked.asked)",
        (),
        lambda rows: [job_of(DETAIL_NAMES, row) for row in rows],
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
    """Return jobs, newest first, without their bodies."""
    names = None if states is None else [str(state) for state in states]
    return Call(
        _LIST,
        (names, task, queue, tenant, limit, before),
        lambda rows: [job_of(LIST_NAMES, row) for row in rows],
    )


def explain(job_id: UUID) -> Call[list[Explanation]]:
    """Return why a job is not running, and until when."""
    return Call(
        "select reason, until, detail from trunkline.explain(p_job => %s::uuid)",
        (job_id,),
        rows_of(Explanation),
    )


def job_of(names: Sequence[str], row: Row) -> Job:
    """Create a Job from a row with these columns."""
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    values["state"] = JobState(values["state"])
    values["tags"] = tuple(values["tags"] or ())
    if "errors" in values:
        values["errors"] = tuple(values["errors"] or ())
    return Job(**values)
