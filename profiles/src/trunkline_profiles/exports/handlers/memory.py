"""How much memory processes use, read from /proc."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["ALERT", "children_of", "private_bytes", "report"]

_MIB: Final = 1 << 20
# Of 1024 MiB that a host for three renders has.
ALERT: Final = 800 * _MIB
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_log = logging.getLogger("trunkline_profiles.exports")


def private_bytes(process: int) -> int:
    """Resident bytes that a process does not share; 0 if it has ended or /proc does not exist."""
    with suppress(OSError, ValueError, IndexError):
        fields = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()
        return max(int(fields[1]) - int(fields[2]), 0) * _PAGE
    return 0


def children_of(process: int) -> list[int]:
    """A process and all that descend from it."""
    found = [process]
    for one in found:
        with suppress(OSError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                with suppress(OSError):
                    children = (thread / "children").read_text(encoding="ascii")
                    found += [int(child) for child in children.split() if int(child) not in found]
    return found


def report(processes: Iterable[int] = ()) -> int:
    """Log the memory of this process and its browsers; warn above 800 MiB. Returns bytes."""
    own = private_bytes(os.getpid())
    browsers = sum(private_bytes(one) for one in processes)
    total = own + browsers
    level = logging.WARNING if total > ALERT else logging.DEBUG
    _log.log(
        level,
        "memory: %d MiB resident, %d MiB heap, %d MiB browsers",
        total // _MIB,
        _heap() // _MIB,
        browsers // _MIB,
    )
    return total


def _heap() -> int:
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5]) * _PAGE
    return 0
