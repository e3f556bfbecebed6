"""A progress bar as text, which counts how often what it shows goes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["PHASES", "Bar"]

PHASES: Final = ("queued", "calculating", "text", "pdf", "audio", "finalizing", "complete")
# With the time before it and the longest message after it, a line has at most 80 characters.
_WIDTH: Final = 16


class Bar:
    """The bar of one job."""

    def __init__(self) -> None:
        # How often the percentage or the phase was lower than before.
        self.falls = 0
        self._percent = self._phase = -1

    def see(self, progress: Mapping[str, Any]) -> str | None:
        """Return the bar as a line if it has moved, and a remark if it went back."""
        percent, phase = int(progress["percent"]), PHASES.index(progress["phase"])
        before = self._percent
        if (percent, phase) == (before, self._phase):
            return None
        fell = percent < before or phase < self._phase
        self.falls += fell
        self._percent, self._phase = percent, phase
        filled = percent * _WIDTH // 100
        ready = f"{progress['docsComplete']:2}/{progress['docsTotal']}"
        line = (
            f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {percent:3} %  {ready}"
            f"  {progress['message']}"
        )
        return f"{line}  WENT BACK from {before} %" if fell else line
