"""Which jobs an operator means."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from trunkline.errors import InvalidFilter
from trunkline.model.job import Job, JobState

__all__ = ["FoundJobs", "JobFilter", "StateCount"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """A filter of jobs; None means any, and all fields that are set must match.

    The times are when a job was created or when it finished; a dead letter finishes when it dies.
    A bound `from` is inclusive, `before` is not. `error` is a part of the type or message of the
    last error, in any case. `error_group` and `acknowledged` match dead letters only.
    """

    state: JobState | str | Sequence[JobState | str] | None = None
    task: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    correlation_id: str | None = None
    unique_key: str | None = None
    error: str | None = None
    error_group: str | None = None
    acknowledged: bool | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    finished_from: datetime | None = None
    finished_before: datetime | None = None
    job_ids: Sequence[UUID | str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the document that the engine takes, with the fields that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: _plain(name, value) for name, value in values.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InvalidFilter(
                "a time of the filter has no time zone",
                hint="Pass an aware datetime, for example datetime.now(UTC).",
                detail={"field": name, "value": value.isoformat()},
            )
        return value.isoformat()
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, Sequence):
        return [str(item) for item in value]
    raise InvalidFilter(
        "a value does not fit its field of the filter",
        hint="Pass text, a list of texts, True, False or a datetime.",
        detail={"field": name, "value": repr(value)},
    )


class FoundJobs(NamedTuple):
    """Jobs that match a filter, newest first, and the cursor of the next page; None at the end.

    A page may be short or empty although `next` is set: one call reads a bounded number of rows.
    """

    jobs: list[Job]
    next: str | None


class StateCount(NamedTuple):
    """How many jobs in one state match a filter; with `more`, at least that many."""

    state: JobState
    jobs: int
    more: bool
