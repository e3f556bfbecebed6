"""A file in shared memory in which handlers record that they ran, while the measure reads it.

Uses only the standard library: rivals import it in their own environments. A record costs a
fraction of a microsecond, the same on every side, and puts no load on the measured database.
"""

import mmap
import os
import time
from functools import cache
from pathlib import Path

__all__ = ["VARIABLE", "WORK_SECONDS", "WORK_VARIABLE", "Slate", "open_slate"]

VARIABLE = "TRUNKLINE_BENCH_SLATE"

# How long a handler waits after it records its run, to simulate work.
WORK_VARIABLE = "TRUNKLINE_BENCH_WORK_SECONDS"
WORK_SECONDS = float(os.environ.get(WORK_VARIABLE) or 0)

_BYTES_PER_JOB = 9


class Slate:
    """For each job number: when a handler first started it, and how often handlers started it."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            memory = memoryview(mmap.mmap(file.fileno(), 0))
        self.jobs = len(memory) // _BYTES_PER_JOB
        # Nanoseconds of the monotonic clock, which all processes of the machine share.
        self.starts = memory[: 8 * self.jobs].cast("q")
        self.counts = memory[8 * self.jobs :]

    @classmethod
    def create(cls, path: Path, jobs: int) -> "Slate":
        """Create an empty slate."""
        # Unlinked first, so that a process with an older file cannot write to this one.
        path.unlink(missing_ok=True)
        with path.open("wb") as file:
            file.truncate(_BYTES_PER_JOB * jobs)
        return cls(path)

    def note(self, number: int) -> None:
        """Record a start; the handler calls this first."""
        if not self.counts[number]:
            self.starts[number] = time.monotonic_ns()
        self.counts[number] += 1

    @property
    def unstarted(self) -> int:
        """How many jobs no handler has started yet."""
        return bytes(self.counts).count(0)

    @property
    def repeated(self) -> int:
        """How many jobs were started more than once."""
        return self.jobs - self.unstarted - bytes(self.counts).count(1)


@cache
def open_slate() -> Slate:
    """The slate that this process was given."""
    return Slate(Path(os.environ[VARIABLE]))
