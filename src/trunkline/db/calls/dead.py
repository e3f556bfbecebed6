"""Dead letters: in groups, counted, and replayed with another payload."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from trunkline.db.call import Call, json_text, one, rows_of, scalar
from trunkline.model import DeadLetterGroup, Enqueued

__all__ = ["count_unacknowledged", "dead_letter_groups", "retry_edited"]


def count_unacknowledged(most: int) -> Call[int]:
    """Return how many dead letters are not acknowledged, counted up to a bound."""
    return Call(
        "select count(*) from (select from trunkline.dead_letters where acknowledged_at is null"
        " limit %s) as d",
        (most,),
        scalar,
    )


def dead_letter_groups(job_filter: Mapping[str, Any], limit: int) -> Call[list[DeadLetterGroup]]:
    """Return dead letters grouped by error, the largest group first."""
    return Call(
        "select error_group, pattern, jobs, more, first_died_at, last_died_at, tasks, sample_job,"
        " sample_error from trunkline.dead_letter_groups("
        "p_filter => %s::text::jsonb, p_limit => %s::integer)",
        (json_text(job_filter), limit),
        rows_of(DeadLetterGroup),
    )


def retry_edited(job: UUID, payload: Mapping[str, Any]) -> Call[Enqueued]:
    """Run a dead letter again with another payload."""
    return Call(
        "select job_id, created, state, run_at from trunkline.retry_edited("
        "p_job => %s::uuid, p_payload => %s::text::jsonb)",
        (job, json_text(payload)),
        one(Enqueued),
    )
