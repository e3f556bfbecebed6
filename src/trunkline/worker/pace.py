"""How long an idle worker waits between claims."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["Pace"]

# Notifications announce new jobs at once; these polls find jobs whose notification was lost.
_IDLE: Final = (5.0, 10.0, 20.0, 30.0)
# Claims soon after the worker asked to be notified. A transaction that was open then did not see
# the request and commits its jobs without a notification. Most take milliseconds.
_LATE_COMMITS: Final = (0.005, 0.02, 0.1, 1.0)
# Interval of claims when no notification can arrive.
_BLIND: Final = 1.0
# Only shortens a wait, so that the longest one is an upper bound.
_JITTER: Final = 0.2


class Pace:
    """Steps through the waits, and starts over when there was work."""

    def __init__(self) -> None:
        self._step = 0
        self._late_scans = list(_LATE_COMMITS)

    def worked(self) -> None:
        """Start over, because there was work."""
        self._step = 0

    def fell_asleep(self) -> None:
        """Schedule the late claims, because the worker has just asked to be notified."""
        self._late_scans = list(_LATE_COMMITS)

    def next_wait(self, *, notified: bool) -> float:
        """Return the seconds until the next claim."""
        if self._late_scans:
            return self._late_scans.pop(0)
        if not notified:
            wait = _BLIND
        else:
            wait = _IDLE[min(self._step, len(_IDLE) - 1)]
            self._step += 1
        return wait * (1 - _JITTER * random.random())  # noqa: S311 - spreads workers
