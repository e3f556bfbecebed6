"""Dead letters in groups, and a replay with another payload."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from trunkline.db.call import Call, json_text, one, rows_of
from trunkline.model import DeadLetterGroup, Enqueued

__all__ = ["dead_letter_groups", "retry_edited"]


def dead_letter_groups(job_filter: Mapping[str, Any], limit: int) -> Call[list[DeadLetterGroup]]:
    """Dead letters by their error, the largest group first."""
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
