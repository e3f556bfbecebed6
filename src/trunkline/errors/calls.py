"""How a call that a handler makes to a provider can go wrong."""

from datetime import datetime
from typing import Final, NamedTuple

from trunkline.errors.base import TrunklineError


class CallError(TrunklineError):
    """Something about a call to a provider."""

    code = "call_error"


class HttpNotInstalled(CallError):
    """A handler uses ctx.http, and the extra `http` is not installed."""

    code = "http_not_installed"
    hint = "Run `pip install 'trunkline[http]'` where the worker runs."


class LimitExhausted(CallError):
    """A limit has no room now, and the handler does not wait for it, or not that long."""

    code = "limit_exhausted"
    hint = (
        "Uncaught, it defers the attempt until there is room, which is no failure. Wait longer "
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
    """A provider refused a call for now; its bucket is paused for everyone."""

    code = "rate_limited"
    hint = (
        "Uncaught, it defers the attempt, which is no failure. Pass raise_for_limit=False to "
        "ctx.http_client to read the answer yourself."
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
        "Connecting, headers and body together took longer than the timeout of the call.",
        "The provider is slow, or the answer is long: pass timeout=30 if it may take longer.",
    ),
    HttpError(
        "bad_status",
        "HTTPStatusError",
        "A provider answered with a status that is no success, and raise_for_status was called.",
        "Read the answer; raise Discard if another attempt would not help.",
    ),
    HttpError(
        "http_failed",
        "HTTPError",
        "No answer: no connection, a broken one, one that is too large, or something that is not "
        "HTTP.",
        "The policy of the task decides on another attempt. Check whether the provider is up.",
    ),
)


def http_error_of(error: BaseException) -> HttpError | None:
    """Return what we know about an error of httpx2, without importing it."""
    names = {kind.__name__ for kind in type(error).__mro__ if _is_of_httpx2(kind)}
    return next((known for known in HTTP_ERRORS if known.name in names), None)


def _is_of_httpx2(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "httpx2"
