"""Find the living server of a data folder.

PostgreSQL leaves ``postmaster.pid`` behind when it is killed or the machine crashes, and the number
in it may meanwhile be another program's: only a process that runs on this data folder counts.
"""

import subprocess
from pathlib import Path

__all__ = ["find"]


def find(data: Path) -> int | None:
    """Return the process id of the server that runs on the data folder, if any does."""
    try:
        first = (data / "postmaster.pid").read_text(encoding="utf-8").split("\n", 1)[0]
        pid = int(first)
    except (FileNotFoundError, ValueError):
        return None
    return pid if str(data) in _arguments(pid) else None


def _arguments(pid: int) -> list[str]:
    """Return the process's arguments; none for a dead one, also while nobody has reaped it."""
    proc = Path("/proc")
    if (proc / "self" / "cmdline").exists():
        try:
            raw = (proc / str(pid) / "cmdline").read_bytes()
        except OSError:
            return []
        return raw.decode("utf-8", "surrogateescape").split("\0")
    listed = subprocess.run(
        ["/bin/ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    # Without /proc the arguments come joined; the folder is the last one that pg_ctl passes.
    _, found, path = listed.stdout.strip().partition(" -D ")
    return [path] if found else []
