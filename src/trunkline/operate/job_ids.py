"""Job ids that callers pass as UUID or text."""

import re
from typing import Final
from uuid import UUID

from trunkline.errors import InvalidArgument

__all__ = ["as_job_id", "as_workflow_id", "id_or_prefix", "start_of_id"]

_PREFIX: Final = re.compile(r"[0-9a-f]{8,32}", re.ASCII | re.IGNORECASE)
# A dash follows so many digits of an id.
_DASHES: Final = (8, 12, 16, 20)


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


def as_workflow_id(workflow: UUID | str) -> UUID:
    """Return the id; refuse text that is not a UUID."""
    if isinstance(workflow, UUID):
        return workflow
    try:
        return UUID(workflow)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument(
            "a workflow id is not a UUID",
            hint="Pass the id of a workflow, as `trunkline workflows list` shows it.",
            detail={"workflow": repr(workflow)},
        ) from error


def start_of_id(text: str) -> str | None:
    """Return the start of an id as ids are written, or None if the text cannot be one."""
    digits = text.replace("-", "")
    if not _PREFIX.fullmatch(digits):
        return None
    # A UUID whose last digits are missing.
    return str(UUID(digits.ljust(32, "0")))[: len(digits) + _dashes(len(digits))]


def _dashes(digits: int) -> int:
    return sum(digits > place for place in _DASHES)


def id_or_prefix(text: UUID | str) -> UUID | str:
    """Return a whole id as UUID, or the digits of a prefix; refuse what is neither."""
    try:
        return text if isinstance(text, UUID) else UUID(text)
    except (ValueError, AttributeError, TypeError):
        digits = text.replace("-", "") if isinstance(text, str) else ""
        if _PREFIX.fullmatch(digits):
            return digits
        raise InvalidArgument(
            "neither an id nor the start of one",
            hint="Pass the id, or at least its first 8 hexadecimal digits.",
            detail={"job": repr(text)},
        ) from None
