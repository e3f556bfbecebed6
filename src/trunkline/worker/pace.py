"""How long an idle worker waits between looks."""

from __future__ import annotations

import random
from typing import Final

__all__ = ["Pace"]

# Notifications announce new work at once; these polls find what none announced.
_IDLE: Final = (5.0, 10.0, 20.0, 30.0)
# Looks soon after the worker asked to be notified: a transaction that was open then may have
# enqueued before and committed since, without seeing the request. Most take milliseconds.
_LATE_COMMITS: Final = (0.005, 0.02, 0.1, 1.0)
# Where no notification can arrive, looking is all there is.
_BLIND: Final = 1.0
# Down only, so that the longest wait stays the longest.
_JITTER: Final = 0.2


class Pace:
    """Steps through the waits; work starts it over."""

    def __init__(self) -> None:
        self._step = 0
        self._late_looks = list(_LATE_COMMITS)

    def worked(self) -> None:
        """There was work: the next idle wait is the first again."""
        self._step = 0

    def fell_asleep(self) -> None:
        """The worker has just asked to be notified."""
        self._late_looks = list(_LATE_COMMITS)

    def next_wait(self, *, notified: bool) -> float:
        """Seconds until the next look."""
        if self._late_looks:
            return self._late_looks.pop(0)
        if not notified:
            wait = _BLIND
        else:
            wait = _IDLE[min(self._step, len(_IDLE) - 1)]
            self._step += 1
        return wait * (1 - _JITTER * random.random())  # noqa: S311 - spreads workers
