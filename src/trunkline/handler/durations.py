"""The duration of a sleep, from its parts."""

from trunkline.errors import InvalidDuration
from trunkline.model import Duration
from trunkline.model import seconds as as_seconds

__all__ = ["total_seconds"]


def total_seconds(
    duration: Duration, seconds: float, minutes: float, hours: float, days: float
) -> float:
    """Return the sum of a duration and its parts in seconds; refuse a negative part."""
    parts = (seconds, minutes * 60, hours * 3600, days * 86400)
    total = as_seconds(duration)
    for part in parts:
        if not part >= 0:
            raise InvalidDuration(part)
        total += part
    return as_seconds(total)
