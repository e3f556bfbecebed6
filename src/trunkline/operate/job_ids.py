"""Job ids as callers pass them."""

from uuid import UUID

from trunkline.errors import InvalidArgument

__all__ = ["as_job_id"]


def as_job_id(job: UUID | str) -> UUID:
    """Return the id; refuse text that is not a UUID."""
    if isinstance(job, UUID):
        return job
    try:
        return UUID(job)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            "a job id is not a UUID",
            hint="Pass the id that enqueue returned.",
            detail={"job": repr(job)},
        ) from error
