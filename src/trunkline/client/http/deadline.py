"""How much of a total time is left."""

from __future__ import annotations

import time

from trunkline.model import Duration, seconds

__all__ = ["Deadline"]


class Deadline:
    """One bound over several steps, by monotonic time."""

    __slots__ = ("_end", "total")

    def __init__(self, timeout: Duration) -> None:
        self.total = seconds(timeout)
        self._end = time.monotonic() + self.total

    def left(self) -> float:
        """Seconds that are left; raises TimeoutError when none are."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
