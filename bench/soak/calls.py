"""The workers' records of their calls: when a call ended, its duration, how many jobs it moved.

Each process writes a file, which is read after the run, so the records delay nothing.
"""

import atexit
import os
import struct
from collections.abc import Iterator
from enum import IntEnum
from pathlib import Path
from typing import IO, NamedTuple

__all__ = ["VARIABLE", "Kind", "Notes", "TimedCall", "read_calls"]

VARIABLE = "TRUNKLINE_BENCH_CALLS"
_RECORD = struct.Struct("<qqii")


class Kind(IntEnum):
    """The kind of a call."""

    CLAIM = 0
    # The claim that scans from the start of the queues at intervals, on its own connection.
    LOOK = 1
    COMPLETE = 2


class TimedCall(NamedTuple):
    """One call; ``ended`` is in nanoseconds of the monotonic clock, ``jobs`` -1 if it failed."""

    ended: int
    taken: int
    kind: int
    jobs: int


class Notes:
    """The file of a process; the first record creates it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None

    def add(self, ended: int, taken: int, kind: Kind, jobs: int) -> None:
        if self._file is None:
            self._file = (self._folder / f"calls-{os.getpid()}").open("wb")
            atexit.register(self.close)
        self._file.write(_RECORD.pack(ended, taken, kind, jobs))

    def close(self) -> None:
        """Write what is buffered; also called at the end of the process."""
        if self._file is not None:
            self._file.close()


def read_calls(folder: Path) -> Iterator[TimedCall]:
    """All records of processes that have ended."""
    for path in sorted(folder.glob("calls-*")):
        for record in _RECORD.iter_unpack(path.read_bytes()):
            yield TimedCall._make(record)
