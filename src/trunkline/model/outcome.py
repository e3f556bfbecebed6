"""Ways for a handler to end an attempt other than returning a result or raising an error.

You can return or raise each of them; raise one to leave nested helper functions.
"""

from typing import TypeAlias

from trunkline.model.duration import Duration, seconds

__all__ = ["Cancel", "Discard", "Outcome", "Retry", "Snooze", "Suspended"]


class _Ending(Exception):
    """Base of the four. An exception, so that nested functions of a handler can raise it."""


class Snooze(_Ending):
    """Defer the job for a while. This does not count as a failure."""

    def __init__(self, delay: Duration, reason: str | None = None) -> None:
        super().__init__(reason or f"snoozed for {delay}")
        self.delay = seconds(delay)
        self.reason = reason


class Cancel(_Ending):
    """End the job as cancelled. This does not count as a failure."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "cancelled by its handler")
        self.reason = reason


class Retry(_Ending):
    """Fail the attempt and try again after the given time, or after the task's back-off."""

    def __init__(self, after: Duration | None = None, reason: str | None = None) -> None:
        super().__init__(reason or "the handler requested another attempt")
        self.after = None if after is None else seconds(after)
        self.reason = reason


class Discard(_Ending):
    """Fail for good: the job becomes a dead letter at once, even if it has attempts left."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Outcome: TypeAlias = Snooze | Cancel | Retry | Discard


class Suspended(BaseException):
    """Ends an attempt of a job that waits: `ctx.sleep`, `ctx.wait_for` and others raise it.

    A BaseException, so that `except Exception` in a handler does not swallow it. Blocks with
    `finally` run. Do not raise it yourself.
    """

    def __init__(self) -> None:
        super().__init__("the job waits, and continues in another attempt")
