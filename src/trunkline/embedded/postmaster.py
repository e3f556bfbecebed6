"""Find the server process of a data folder, and stop it."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

__all__ = ["interrupt", "is_other_program", "runs"]

_PROC = Path("/proc")


def runs(pid: int, data: Path, uid: int) -> bool:
    """Return whether a live process of this user runs on the data folder."""
    owner, arguments = _describe(pid)
    return owner == uid and str(data) in arguments


def is_other_program(pid: int) -> bool:
    """Return whether this process lives and is not PostgreSQL, whatever its data folder."""
    _, arguments = _describe(pid)
    program = arguments[0] if arguments else ""
    return bool(program) and Path(program).name != "postgres"


def interrupt(pid: int, still: Callable[[], bool]) -> None:
    """Send SIGINT to a process if ``still`` confirms that it is the intended one."""
    if not hasattr(os, "pidfd_open"):
        if still():
            os.kill(pid, signal.SIGINT)
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # The descriptor refers to this process even if its number is reused.
        if still():
            signal.pidfd_send_signal(descriptor, signal.SIGINT)
    except ProcessLookupError:
        pass
    finally:
        os.close(descriptor)


def _describe(pid: int) -> tuple[int | None, list[str]]:
    """Return the effective user id and the arguments; no arguments for a process that has ended."""
    if (_PROC / "self" / "cmdline").exists():
        try:
            lines = (_PROC / str(pid) / "status").read_text(encoding="utf-8").splitlines()
            raw = (_PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            return None, []
        owner = next(line.split()[2] for line in lines if line.startswith("Uid:"))
        return int(owner), raw.decode("utf-8", "surrogateescape").split("\0")
    listed = subprocess.run(
        ["/bin/ps", "-o", "uid=,command=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    if not listed:
        return None, []
    # Without /proc the arguments are one string; pg_ctl passes the folder last.
    owner, _, command = listed.partition(" ")
    program, found, path = command.strip().partition(" -D ")
    return int(owner), [program, path] if found else [program]
