"""Reads what a provider says about its limits in the headers of an answer.

Providers use seconds, durations such as 6m0s, or points in time. Values that cannot be understood
are left out and their headers named in `nonsense`; nothing a provider sends raises an error here.
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
# A number larger than this is a point in time; one still larger counts milliseconds (2001).
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

# The first header that can be understood counts.
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
    """The facts that were understood; resets and retry_after are seconds from now."""

    retry_after: float | None = None
    limit_requests: int | None = None
    remaining_requests: int | None = None
    reset_requests: float | None = None
    limit_tokens: int | None = None
    remaining_tokens: int | None = None
    reset_tokens: float | None = None
    # Names of headers whose values could not be understood.
    nonsense: tuple[str, ...] = ()

    def refuses(self, status: int) -> bool:
        """Whether an answer with this status refuses the call for now."""
        return status == _TOO_MANY or (status == _UNAVAILABLE and self.retry_after is not None)

    def is_low(self) -> bool:
        """Whether little or nothing is left, so that other workers should know."""
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
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def _is_low(remaining: int | None, limit: int | None) -> bool:
    if remaining is None:
        return False
    return remaining == 0 or (limit is not None and remaining < limit * _LOW)


def read(headers: Mapping[str, str], now: float) -> Observed:
    """Read the headers of an answer, by names in lower case; `now` is Unix time.

    Points in time are compared with the provider's own clock if it sends a date.
    """
    own = _date(headers.get("date", ""))
    return _Reading(headers, now if own is None else own).observed()


class _Reading:
    def __init__(self, headers: Mapping[str, str], now: float) -> None:
        self._headers = headers
        self._now = now
        self._nonsense: list[str] = []

    def observed(self) -> Observed:
        found: dict[str, Any] = {name: self._first(name) for name in _NAMES}
        for name, text in self._combined().items():
            if found[name] is None:
                found[name] = self._value("ratelimit", name, text)
        return Observed(retry_after=self._retry_after(), nonsense=tuple(self._nonsense), **found)

    def _first(self, name: str) -> float | None:
        for header in _NAMES[name]:
            text = self._headers.get(header)
            if text is not None:
                value = self._value(header, name, text)
                if value is not None:
                    return value
        return None

    def _value(self, header: str, name: str, text: str) -> float | None:
        # Of `100, 100;w=60` the first number counts. A date has a comma too.
        first = re.split(r"[,;]", text[:_LONGEST_TEXT])[0].strip()
        value: float | None
        if name.startswith("reset"):
            value = self._wait(text.strip())
            value = self._wait(first) if value is None else value
        else:
            value = _whole(first)
        if value is None:
            self._nonsense.append(header)
        return value

    def _combined(self) -> dict[str, str]:
        """Return the facts of the combined header of newer drafts."""
        found: dict[str, str] = {}
        for header in ("ratelimit", "ratelimit-policy"):
            text = self._headers.get(header, "")[:_LONGEST_TEXT].lower()
            for name, value in _FIELD.findall(text):
                found.setdefault(f"{_FIELDS.get(name, name)}_requests", value)
        return found

    def _retry_after(self) -> float | None:
        milliseconds = self._headers.get("retry-after-ms")
        if milliseconds is not None:
            number = _number(milliseconds.strip())
            if number is not None and number / 1000 <= _LONGEST:
                return number / 1000
            self._nonsense.append("retry-after-ms")
        text = self._headers.get("retry-after")
        if text is None:
            return None
        found = self._wait(text.strip())
        if found is None:
            self._nonsense.append("retry-after")
        return found

    def _wait(self, text: str) -> float | None:
        """Return seconds from now, given seconds, a duration, Unix time or an HTTP date."""
        if len(text) > _LONGEST_TEXT:
            return None
        found = _number(text)
        if found is not None:
            if found >= _EPOCH:
                found = found / 1000 if found >= _EPOCH_MILLISECONDS else found
                found = max(found - self._now, 0.0)
        elif _DURATION.fullmatch(text):
            parts = _DURATION_PART.findall(text)
            found = sum(float(number) * _UNITS[unit] for number, unit in parts)
        else:
            date = _date(text)
            found = None if date is None else max(date - self._now, 0.0)
        return found if found is not None and found <= _LONGEST else None


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) and text.isascii() else None


def _whole(text: str) -> int | None:
    match = _WHOLE.fullmatch(text)
    if match is None or not text.isascii():
        return None
    found = int(match[1])
    return found if found <= _MOST else None


def _date(text: str) -> float | None:
    if not text or len(text) > _LONGEST_TEXT:
        return None
    try:
        date = parsedate_to_datetime(text)
        # Dates of HTTP are in GMT, also without a zone.
        found = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None
    return found if math.isfinite(found) else None
