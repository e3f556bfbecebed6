"""Changes of many jobs, one batch per call."""

from collections.abc import Mapping
from typing import Any

from trunkline.db.call import Call, json_text, one, plain_text
from trunkline.model import BulkChange

__all__ = ["acknowledge_jobs", "cancel_jobs", "discard_jobs", "reprioritise_jobs", "retry_jobs"]


def acknowledge_jobs(
    job_filter: Mapping[str, Any], *, limit: int, cursor: str | None, all_jobs: bool
) -> Call[BulkChange]:
    """Mark the next dead letters that match as seen."""
    return Call(
        "select jobs, outcomes, job_ids, next from trunkline.acknowledge_jobs("
        "p_filter => %s::text::jsonb, p_limit => %s::integer, p_cursor => %s,"
        " p_all => %s::boolean)",
        (json_text(job_filter), limit, cursor, all_jobs),
        one(BulkChange),
    )


def cancel_jobs(
    job_filter: Mapping[str, Any],
    *,
    reason: str | None,
    limit: int,
    cursor: str | None,
    all_jobs: bool,
) -> Call[BulkChange]:
    """Cancel the next jobs that match."""
    return Call(
        "select jobs, outcomes, job_ids, next from trunkline.cancel_jobs("
        "p_filter => %s::text::jsonb, p_reason => %s, p_limit => %s::integer, p_cursor => %s,"
        " p_all => %s::boolean)",
        (json_text(job_filter), plain_text(reason), limit, cursor, all_jobs),
        one(BulkChange),
    )


def retry_jobs(
    job_filter: Mapping[str, Any], *, limit: int, cursor: str | None, all_jobs: bool
) -> Call[BulkChange]:
    """Run the next jobs that match again."""
    return Call(
        "select jobs, outcomes, job_ids, next from trunkline.retry_jobs("
        "p_filter => %s::text::jsonb, p_limit => %s::integer, p_cursor => %s,"
        " p_all => %s::boolean)",
        (json_text(job_filter), limit, cursor, all_jobs),
        one(BulkChange),
    )


def reprioritise_jobs(
    job_filter: Mapping[str, Any],
    priority: int,
    *,
    limit: int,
    cursor: str | None,
    all_jobs: bool,
) -> Call[BulkChange]:
    """Change the priority of the next waiting jobs that match."""
    return Call(
        "select jobs, outcomes, job_ids, next from trunkline.reprioritise_jobs("
        "p_filter => %s::text::jsonb, p_priority => %s::integer, p_limit => %s::integer,"
        " p_cursor => %s, p_all => %s::boolean)",
        (json_text(job_filter), priority, limit, cursor, all_jobs),
        one(BulkChange),
    )


def discard_jobs(
    job_filter: Mapping[str, Any],
    *,
    reason: str | None,
    limit: int,
    cursor: str | None,
    all_jobs: bool,
) -> Call[BulkChange]:
    """Delete the next dead letters that match."""
    return Call(
        "select jobs, outcomes, job_ids, next from trunkline.discard_jobs("
        "p_filter => %s::text::jsonb, p_reason => %s, p_limit => %s::integer, p_cursor => %s,"
        " p_all => %s::boolean)",
        (json_text(job_filter), plain_text(reason), limit, cursor, all_jobs),
        one(BulkChange),
    )
