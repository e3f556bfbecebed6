"""The machine and its server, on which the figures depend."""

import os
import platform
from pathlib import Path
from typing import Any

from bench.place import Place

__all__ = ["machine"]


def machine(place: Place) -> dict[str, Any]:
    """Describe the machine without its name."""
    return {
        **place.facts,
        "processor": _line("/proc/cpuinfo", "model name") or platform.machine(),
        "memory": f"{_memory_gib():.0f} GiB",
        "system": f"{_line('/etc/os-release', 'PRETTY_NAME') or platform.system()}, "
        f"Linux {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def _memory_gib() -> float:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30


def _line(path: str, name: str) -> str:
    """Return the value that a file has for a name."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        if line.startswith(name):
            return line[len(name) :].strip('\t :="')
    return ""
