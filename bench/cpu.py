"""Processor time of processes and all their descendants, as the kernel counts it."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["cpu_seconds", "family", "parent_of"]

_TICKS = os.sysconf("SC_CLK_TCK")
_TRIES = 5


def family(roots: Iterable[int]) -> list[int]:
    """Return these processes and their descendants, without those that just ended."""
    pids = list(roots)
    for pid in pids:
        # A process may end between any two steps, even while its folder is listed.
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(OSError):
                    pids += [int(child) for child in children.read_text(encoding="ascii").split()]
    return pids


def cpu_seconds(roots: Iterable[int]) -> float:
    """Return the time they have used so far, including descendants that have ended.

    A parent inherits the time of a child when it collects its exit status. So short-lived
    processes, such as those that serve short connections, count for their parents.
    """
    roots = list(roots)
    total = 0
    for _ in range(_TRIES):
        before = family(roots)
        total = sum(_ticks(pid) for pid in before)
        # Otherwise, a process that ends between two scans is missed or counted twice.
        if family(roots) == before:
            break
    return total / _TICKS


def parent_of(pid: int) -> int:
    """Return the process that started it."""
    return int(_stat(pid)[1])


def _ticks(pid: int) -> int:
    try:
        return sum(int(field) for field in _stat(pid)[11:15])
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    # The program's name is in parentheses and may contain anything, so parse what follows it.
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
