"""Reads what a provider reports about its limits in the headers of an answer.

Providers use seconds, durations such as 6m0s, or points in time. Values that cannot be read are
left out, and their headers are listed in `unreadable`. No header raises an error here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Final

__all__ = ["Observed", "read"]

_TOO_MANY: Final = 429
_UNAVAILABLE: Final = 503
# Below this share of its limit, what remains is reported to other workers.
_LOW: Final = 0.1
# A number from this on is a point in time (2001); from the second one on it is in milliseconds.
_EPOCH: Final = 1e9
_EPOCH_MILLISECONDS: Final = 1e11
# A longer pause is not credible and is ignored.
_LONGEST: Final = 31 * 86400.0
_MOST: Final = 10**15
_LONGEST_TEXT: Final = 200

_WHOLE: Final = re.compile(r"\+?([0-9]{1,16})(?:\.0*)?")
_NUMBER: Final = re.compile(r"[0-9]{1,16}(?:\.[0-9]{0,9})?")
_DURATION: Final = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|d|h|m|s))+", re.ASCII)
_DURATION_PART: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(ms|d|h|m|s)", re.ASCII)
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
# `"default";r=50;t=30` and `limit=100, remaining=50, reset=30`: two drafts of one header.
_FIELD: Final = re.compile(r"(?:^|[;,\s])(limit|remaining|reset|r|t|q)\s*=\s*\"?([^;,\s\"]+)")
_FIELDS: Final = {"r": "remaining", "t": "reset", "q": "limit"}

# The first header that can be read counts.
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    **{
        f"{fact}_requests": (
            f"x-ratelimit-{fact}-requests",
            f"x-ratelimit-{fact}",
            f"ratelimit-{fact}",
        )
        for fact in ("limit", "remaining", "reset")
    },
    **{
        f"{fact}_tokens": (f"x-ratelimit-{fact}-tokens",)
        for fact in ("limit", "remaining", "reset")
    },
}


@dataclass(frozen=True, slots=True)
class Observed:
    """The values that could be read; resets and retry_after are seconds from now."""

    retry_after: float | None = None
    limit_requests: int | None = None
    remaining_requests: int | None = None
    reset_requests: float | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset_tokens: float | None = None
    # Names of headers whose values could not be read.
    unreadable: tuple[str, ...] = ()

    def refuses(self, status: int) -> bool:
        """Whether an answer with this status refuses the call for now."""
        return status == _TOO_MANY or (status == _UNAVAILABLE and self.retry_after is not None)

    def is_low(self) -> bool:
        """Whether so little is left that it must be reported to other workers."""
        return _is_low(self.remaining_requests, self.limit_requests) or _is_low(
            self.remaining_tokens, self.limit_tokens
        )

    def pause(self) -> float | None:
        """Return how long to wait after a refusal: as asked for, or until the reset."""
        if self.retry_after is not None:
            return self.retry_after
        resets = [
            reset
            for remaining, reset in (
                (self.remaining_requests, self.reset_requests),
                (self.remaining_tokens, self.reset_tokens),
            )
            if remaining == 0 and reset is not None
        ]
        return max(resets, default=None)

    def as_json(self) -> dict[str, Any]:
        """Return the argument of observe_limit."""
        names = (
            "retry_after",
            "remaining_requests",
            "remaining_tokens",
            "reset_requests",
            "reset_tokens",
        )
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


def _is_low(remaining: int | None, limit: int | None) -> bool:
    if remaining is None:
        return False
    return remaining == 0 or (limit is not None and remaining < limit * _LOW)


def read(headers: Mapping[str, str], now: float) -> Observed:
    """Read the headers of an answer, by names in lower case; `now` is Unix time.

    Points in time are compared with the provider's own clock if it sends a date.
    """
    date = _date(headers.get("date", ""))
    return _Reading(headers, now if date is None else date).observed()


class _Reading:
    def __init__(self, headers: Mapping[str, str], now: float) -> None:
        self._headers = headers
        self._now = now
        self._unreadable: list[str] = []

    def observed(self) -> Observed:
        values: dict[str, Any] = {name: self._first(name) for name in _NAMES}
        for name, text in self._combined().items():
            if values[name] is None:
                values[name] = self._value("ratelimit", name, text)
        retry_after = self._retry_after()
        return Observed(retry_after=retry_after, unreadable=tuple(self._unreadable), **values)

    def _first(self, name: str) -> float | None:
        for header in _NAMES[name]:
            text = self._headers.get(header)
            if text is not None:
                value = self._value(header, name, text)
                if value is not None:
                    return value
        return None

    def _value(self, header: str, name: str, text: str) -> float | None:
        # The first number of `100, 100;w=60` counts. A date contains a comma too.
        first = re.split(r"[,;]", text[:_LONGEST_TEXT])[0].strip()
        value: float | None
        if name.startswith("reset"):
            value = self._wait(text.strip())
            value = self._wait(first) if value is None else value
        else:
            value = _whole(first)
        if value is None:
            self._unreadable.append(header)
        return value

    def _combined(self) -> dict[str, str]:
        """Return the values of the combined header of newer drafts."""
        values: dict[str, str] = {}
        for header in ("ratelimit", "ratelimit-policy"):
            text = self._headers.get(header, "")[:_LONGEST_TEXT].lower()
            for name, value in _FIELD.findall(text):
                values.setdefault(f"{_FIELDS.get(name, name)}_requests", value)
        return values

    def _retry_after(self) -> float | None:
        milliseconds = self._headers.get("retry-after-ms")
        if milliseconds is not None:
            number = _number(milliseconds.strip())
            if number is not None and number / 1000 <= _LONGEST:
                return number / 1000
            self._unreadable.append("retry-after-ms")
        text = self._headers.get("retry-after")
        if text is None:
            return None
        wait = self._wait(text.strip())
        if wait is None:
            self._unreadable.append("retry-after")
        return wait

    def _wait(self, text: str) -> float | None:
        """Return seconds from now from seconds, a duration, a Unix time or an HTTP date."""
        if len(text) > _LONGEST_TEXT:
            return None
        wait = _number(text)
        if wait is not None:
            if wait >= _EPOCH:
                epoch = wait / 1000 if wait >= _EPOCH_MILLISECONDS else wait
                wait = max(epoch - self._now, 0.0)
        elif _DURATION.fullmatch(text):
            parts = _DURATION_PART.findall(text)
            wait = sum(float(number) * _UNITS[unit] for number, unit in parts)
        else:
            date = _date(text)
            wait = None if date is None else max(date - self._now, 0.0)
        return wait if wait is not None and wait <= _LONGEST else None


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) and text.isascii() else None


def _whole(text: str) -> int | None:
    match = _WHOLE.fullmatch(text)
    if match is None or not text.isascii():
        return None
    number = int(match[1])
    return number if number <= _MOST else None


def _date(text: str) -> float | None:
    if not text or len(text) > _LONGEST_TEXT:
        return None
    try:
        date = parsedate_to_datetime(text)
        # HTTP dates are in GMT, even without a zone.
        timestamp = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None
    return timestamp if math.isfinite(timestamp) else None
