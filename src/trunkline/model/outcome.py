"""How a handler may end an attempt other than by returning a result or raising an error.

Each of them can be returned or raised; raising reaches through helper functions.
"""

from typing import TypeAlias

from trunkline.model.duration import Duration, seconds

__all__ = ["Cancel", "Discard", "Outcome", "Retry", "Snooze"]


class _Ending(Exception):
    """Base of the four: an exception, so that it can be raised from deep inside a handler."""


class Snooze(_Ending):
    """Not now: put the job back for a while. Counts as no failure."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        super().__init__(reason or f"snoozed for {delay}")
        self.delay = seconds(delay)
        self.reason = reason


class Cancel(_Ending):
    """Stop for good, without it being an error: the job ends as cancelled."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "cancelled by its handler")
        self.reason = reason


class Retry(_Ending):
    """Failed, try again: after the given time, or after the back-off of the task."""

    def __init__(self, after: Duration | None = None, reason: str | None = None) -> None:
        super().__init__(reason or "the handler asked for another attempt")
        self.after = None if after is None else seconds(after)
        self.reason = reason


class Discard(_Ending):
    """Failed for good: the job becomes a dead letter at once, whatever attempts are left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Outcome: TypeAlias = Snooze | Cancel | Retry | Discard
