"""Filters of jobs, from the query or from a body."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from trunkline.model import JobFilter, JobState

__all__ = ["FilterBody", "JobFilterQuery", "Limit", "as_filter"]

Limit = Annotated[int, msgspec.Meta(ge=1, le=1000, description="Items of a page.")]
# PostgreSQL stores no NUL, so nothing can match one.
_Text = Annotated[str, msgspec.Meta(max_length=1000, pattern=r"^[^\x00]*$")]
_Zoned = Annotated[datetime, msgspec.Meta(tz=True)]


class FilterBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs: all fields that are set must match.

    A bound `from` is inclusive, `before` is not. `error` is a part of the type or message of the
    last error. `error_group` and `acknowledged` match dead letters only.
    """

    state: list[JobState] | None = None
    task: _Text | None = None
    queue: _Text | None = None
    tenant: _Text | None = None
    tag: _Text | None = None
    correlation_id: _Text | None = None
    unique_key: _Text | None = None
    error: _Text | None = None
    error_group: _Text | None = None
    acknowledged: bool | None = None
    created_from: _Zoned | None = None
    created_before: _Zoned | None = None
    finished_from: _Zoned | None = None
    finished_before: _Zoned | None = None
    job_ids: Annotated[list[UUID], msgspec.Meta(max_length=1000)] | None = None


class JobFilterQuery(FilterBody, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Which jobs, and which page of them."""

    limit: Limit = 100
    cursor: _Text | None = None


def as_filter(body: FilterBody) -> JobFilter:
    """Return the filter as the engine takes it."""
    values: dict[str, Any] = {
        field.name: getattr(body, field.name) for field in msgspec.structs.fields(FilterBody)
    }
    return JobFilter(**values)
