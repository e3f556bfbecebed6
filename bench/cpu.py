"""Processor time of processes and everything that descends from them, from the kernel's books."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

__all__ = ["cpu_seconds", "family", "parent_of"]

_TICKS = os.sysconf("SC_CLK_TCK")
_TRIES = 5


def family(roots: Iterable[int]) -> list[int]:
    """Give these processes and their descendants; one that just ended is left out."""
    found = list(roots)
    for pid in found:
        # A process may end between any two steps, even while its folder is listed.
        with suppress(OSError):
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                with suppress(OSError):
                    found += [int(child) for child in children.read_text(encoding="ascii").split()]
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """Give the time they have used so far; descendants that have ended count too.

    A parent inherits the time of a child when it learns of its end, so short-lived processes, as
    those that serve short connections, are in the books of their parents.
    """
    roots = list(roots)
    total = 0
    for _ in range(_TRIES):
        before = family(roots)
        total = sum(_ticks(pid) for pid in before)
        # Whoever ended between two looks would be missing, or be counted twice.
        if family(roots) == before:
            break
    return total / _TICKS


def parent_of(pid: int) -> int:
    """Give the process that started it."""
    return int(_stat(pid)[1])


def _ticks(pid: int) -> int:
    try:
        return sum(int(field) for field in _stat(pid)[11:15])
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    # The name of the program is in brackets and may hold anything, so count from behind it.
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
