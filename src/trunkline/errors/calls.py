"""How a call that a handler makes to a provider can go wrong."""

from datetime import datetime

from trunkline.errors.base import TrunklineError


class CallError(TrunklineError):
    """Something about a call to a provider."""

    code = "call_error"


class BadStatus(CallError):
    """A provider answered with a status that is an error, and raise_for_status was called."""

    code = "bad_status"
    hint = "Look at the answer; raise Discard where another attempt would not help."

    def __init__(self, message: str, *, status: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status


class HttpFailed(CallError):
    """No answer: no connection, a broken one, or something that is not HTTP."""

    code = "http_failed"
    hint = "The attempt is repeated by the policy of its task; look whether the provider is up."

    def __init__(self, message: str, *, received: int = 0, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        # Bytes that had arrived by then.
        self.received = received


class HttpTimeout(HttpFailed, TimeoutError):
    """Connecting, headers and body together took longer than they may."""

    code = "http_timeout"
    hint = 'The provider is slow, or the answer is long: pass timeout="30s" if it may take longer.'


class LimitExhausted(CallError):
    """A limit has no room now, and the handler does not wait for it, or not that long."""

    code = "limit_exhausted"
    hint = (
        "Uncaught, the attempt is put off until there is room, which is no failure. Wait longer "
        'with wait="10m" or wait=True, or look at `trunkline limits list`.'
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
        # The part of the limit that is used up, or held, breaker, maintenance, disabled.
        self.reason = reason
        # When there will be room, by the server's clock, and in how many seconds; None: unknown.
        self.free_at = free_at
        self.free_in = free_in


class RateLimited(CallError):
    """A provider said: not now. Its limit is held for everybody, and the attempt is put off."""

    code = "rate_limited"
    hint = (
        "Uncaught, it is no failure: the attempt is put off. Pass raise_for_limit=False to look at "
        "the answer yourself."
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
        # In how many seconds to come back, where the provider said so.
        self.retry_after = retry_after
