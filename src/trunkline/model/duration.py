"""Durations as people write them."""

import re
from datetime import timedelta
from typing import Final, TypeAlias

from trunkline.errors import InvalidDuration

__all__ = ["Duration", "interval", "seconds"]

# A timedelta, a number of seconds, or text such as "500ms", "10s", "5m", "2h", "1d", "1h30m".
Duration: TypeAlias = timedelta | float | str

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# PostgreSQL's intervals can be longer, but no lease or delay needs that.
_LONGEST: Final = 10 * 365 * 86400.0


def seconds(value: Duration) -> float:
    """Return a duration in seconds, or raise InvalidDuration.

    >>> seconds("1h30m"), seconds(2), seconds("500ms")
    (5400.0, 2.0, 0.5)
    """
    match value:
        case bool():
            raise InvalidDuration(value)
        case timedelta():
            found = value.total_seconds()
        case int() | float():
            found = float(value)
        case str():
            found = _from_text(value)
        case _:
            raise InvalidDuration(value)
    # Refuses NaN, too, which is not between any bounds.
    if not 0 <= found <= _LONGEST:
        raise InvalidDuration(value)
    return found


def interval(value: Duration | None) -> timedelta | None:
    """Return a duration as a timedelta, which drivers send as an interval."""
    return None if value is None else timedelta(seconds=seconds(value))


def _from_text(text: str) -> float:
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise InvalidDuration(text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
