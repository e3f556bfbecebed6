"""Errors of calls that a handler makes to a provider."""

from datetime import datetime
from typing import Final, NamedTuple

from trunkline.errors.base import TrunklineError


class CallError(TrunklineError):
    """A call to a provider failed."""

    code = "call_error"


class HttpNotInstalled(CallError):
    """A handler uses ctx.http, and the extra `http` is not installed."""

    code = "http_not_installed"
    hint = "Run `pip install 'trunkline[http]'` where the worker runs."


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
        "raise_for_limit=False to ctx.http_client to read the response yourself."
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


class HttpError(NamedTuple):
    """A class of httpx2 that has a code with us."""

    code: str
    # Its name in httpx2.
    name: str
    meaning: str
    hint: str


# The first that fits counts. Other errors of httpx2 have no code: they are mistakes of the caller.
HTTP_ERRORS: Final = (
    HttpError(
        "http_timeout",
        "TimeoutException",
        "The call, from connecting to the end of the body, took longer than its timeout.",
        "The provider is slow, or the response is long. To wait longer, pass timeout=30.",
    ),
    HttpError(
        "bad_status",
        "HTTPStatusError",
        "The provider's response has no success status, and raise_for_status was called.",
        "Read the response. Raise Discard if another attempt would not help.",
    ),
    HttpError(
        "http_failed",
        "HTTPError",
        "There was no usable response: no connection, a broken one, a response that is too large, "
        "or data that is not HTTP.",
        "Check that the provider is up. The policy of the task decides when to try again.",
    ),
)


def http_error_of(error: BaseException) -> HttpError | None:
    """Return what we know about an error of httpx2, without importing it."""
    names = {kind.__name__ for kind in type(error).__mro__ if _is_of_httpx2(kind)}
    return next((known for known in HTTP_ERRORS if known.name in names), None)


def _is_of_httpx2(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "httpx2"
