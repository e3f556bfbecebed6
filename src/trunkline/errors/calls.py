"""Errors of calls that a handler makes to a provider."""

from datetime import datetime

from trunkline.errors.base import TrunklineError


class CallError(TrunklineError):
    """A call to a provider failed."""

    code = "call_error"


class BadStatus(CallError):
    """The provider's response has an error status, and raise_for_status was called."""

    code = "bad_status"
    hint = "Read the response. Raise Discard if another attempt would not help."

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class HttpFailed(CallError):
    """There was no response: no connection, a broken one, or data that is not HTTP."""

    code = "http_failed"
    hint = "Check that the provider is up. The policy of the task decides when to try again."

    def __init__(self, message: str, *, received: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        # Bytes received before the failure.
        self.received = received


class HttpTimeout(HttpFailed, TimeoutError):
    """The call, from connecting to the end of the body, took longer than its timeout."""

    code = "http_timeout"
    hint = 'The provider is slow, or the response is long. To wait longer, pass timeout="30s".'


class LimitExhausted(CallError):
    """A limit has no room now, and the handler does not wait, or not long enough."""

    code = "limit_exhausted"
    hint = (
        "If the handler does not catch this, the attempt is deferred until there is room; that is "
        'not a failure. Wait longer with wait="10m" or wait=True. `trunkline limits list` shows '
        "the limits."
    )

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        free_at: datetime | None = None,
        free_in: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        # The part of the limit that is used up, or paused, breaker, maintenance, disabled.
        self.reason = reason
        # When there will be room, by the server's clock, and in how many seconds. None: unknown.
        self.free_at = free_at
        self.free_in = free_in


class RateLimited(CallError):
    """A provider refused a call for now. Its limit is paused for all workers."""

    code = "rate_limited"
    hint = (
        "If the handler does not catch this, the attempt is deferred; that is not a failure. Pass "
        "raise_for_limit=False to read the response yourself."
    )

    def __init__(
        self,
        message: str,
        *,
        status: int = 429,
        retry_after: float | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        # Seconds to wait, if the provider returned them.
        self.retry_after = retry_after
