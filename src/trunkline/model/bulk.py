"""Changes of many jobs."""

from collections.abc import Mapping
from typing import Literal, NamedTuple
from uuid import UUID

from trunkline.model.job import Job
from trunkline.model.job_filter import StateCount

__all__ = ["BulkAction", "BulkChange", "BulkPreview", "BulkProgress"]

BulkAction = Literal["acknowledge", "cancel", "discard", "reprioritise", "retry"]


class BulkChange(NamedTuple):
    """What one batch did: jobs that matched, how many had which outcome, and the changed ids.

    `next` is the cursor of the next batch; None after the last one.
    """

    jobs: int
    outcomes: Mapping[str, int]
    job_ids: list[UUID]
    next: str | None


class BulkProgress(NamedTuple):
    """What all batches so far did. The work can be continued later from `cursor`.

    `outcomes` counts jobs by what became of them, `job_ids` has those that the last batch changed.
    `cursor` is None when no job is left.
    """

    jobs: int
    outcomes: Mapping[str, int]
    job_ids: list[UUID]
    cursor: str | None


class BulkPreview(NamedTuple):
    """What a bulk action would change: jobs by state, up to 10,000 each, and the newest of them."""

    counts: list[StateCount]
    sample: list[Job]
