"""The headers in which a provider reports its limits, valid and invalid ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from math import ceil
from typing import Final

from trunkline_profiles.clinical.stubs.limits import Model, Room

__all__ = ["ALL", "NONSENSE", "current", "duration", "retry_after"]

# Invalid values of headers.
NONSENSE: Final[dict[str, str]] = {
    "words": "soon",
    "negative": "-5",
    "huge": "9" * 40,
    "nan": "NaN",
    "empty": "",
    "accents": "1s\xe9",
    "date": "Thu, 32 Foo 2026 99:99:99 GMT",
}

ALL: Final = (
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
    "Retry-After",
)


def duration(seconds: float) -> str:
    """A time as OpenAI writes it: 20ms, 1s, 1.5s, 6m0s, 1h0m0s."""
    milliseconds = max(round(seconds * 1000), 0)
    if milliseconds < 1000:
        return f"{milliseconds}ms"
    whole, part = divmod(milliseconds, 1000)
    minutes, left = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    tail = f"{left}.{part:03d}".rstrip("0") if part else str(left)
    if hours:
        return f"{hours}h{minutes}m{tail}s"
    return f"{minutes}m{tail}s" if minutes else f"{tail}s"


def current(model: Model, room: Room) -> dict[str, str]:
    """What is left of the minute's limits."""
    headers = {}
    for unit, limit, left in (
        ("requests", model.requests_per_minute, room.requests_left),
        ("tokens", model.tokens_per_minute, room.tokens_left),
    ):
        if limit is not None:
            headers[f"x-ratelimit-limit-{unit}"] = str(limit)
            headers[f"x-ratelimit-remaining-{unit}"] = str(left)
            headers[f"x-ratelimit-reset-{unit}"] = duration(room.reset)
    return headers


def retry_after(wait: float, *, as_date: bool) -> str:
    """The time to wait, in seconds or as a date."""
    # Rounded up to whole seconds, so that a caller that waits this long finds room.
    if as_date:
        moment = datetime.now(UTC) + timedelta(seconds=wait)
        if moment.microsecond:
            moment = moment.replace(microsecond=0) + timedelta(seconds=1)
        return format_datetime(moment, usegmt=True)
    return str(ceil(wait))
