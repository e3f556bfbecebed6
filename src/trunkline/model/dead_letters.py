"""Dead letters: jobs that used up their attempts or were refused for good."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

__all__ = ["DeadLetterGroup", "PacedReplay"]


class DeadLetterGroup(NamedTuple):
    """Dead letters with the same error, apart from quoted texts, UUIDs and numbers.

    Pass `error_group` in a `JobFilter` to reach them. `tasks` has the newest 1,000 by task. With
    `more`, there are at least `jobs` of them.
    """

    error_group: str
    pattern: str
    jobs: int
    more: bool
    first_died_at: datetime
    last_died_at: datetime
    tasks: Mapping[str, int]
    sample_job: UUID
    sample_error: Mapping[str, Any] | None


class PacedReplay(NamedTuple):
    """How a paced replay stands.

    `failed` counts replayed jobs that have failed again, `completed` those that have ended well;
    the others have not ended an attempt yet. `outcomes` also has jobs that could not be replayed.
    `stopped` is true if too many failed again. The replay can be continued later from `cursor`,
    which is None when no dead letter is left.
    """

    replayed: int
    completed: int
    failed: int
    outcomes: Mapping[str, int]
    stopped: bool
    cursor: str | None
