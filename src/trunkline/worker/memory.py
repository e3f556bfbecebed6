"""Resident memory of this process, and the limit at which a fresh process replaces it."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trunkline.worker.part import Part

__all__ = ["Memory", "resident"]

_EVERY: Final = 1.0
_STATM: Final = Path("/proc/self/statm")


def resident() -> int:
    """Return the bytes of memory in use, or the peak on systems without /proc."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


class Memory(Part):
    """Drains the process when it exceeds the limit; the supervisor starts a successor."""

    name = "memory"

    def __init__(self, limit: int, on_excess: Callable[[], None]) -> None:
        super().__init__()
        self._limit = limit
        self._on_excess = on_excess

    async def turn(self) -> None:
        """Wait, then check once."""
        await self.pause(_EVERY)
        used = resident()
        if used > self._limit and not self.stopping.is_set():
            self.log.warning(
                "%d MB of memory in use, more than %d: finishing the running jobs, then restarting",
                used // 2**20,
                self._limit // 2**20,
            )
            self._on_excess()
            await self.stopping.wait()
