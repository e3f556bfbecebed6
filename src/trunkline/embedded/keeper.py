"""Stops the server when its last user was killed and so could not do it.

One small process per server, started with it: it looks every two seconds whether anybody holds the
lock of the users, which the kernel drops with its holder. It takes the start lock to look, so that
it never disturbs one who joins or leaves. Run as a script with the standard library alone, because
it is there as long as the server; what stops the server is a process of its own.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["watch"]

_INTERVAL = 2.0
_LOCK = "keeper.lock"
_STOP = "import sys; from trunkline.embedded import service; service.stop_if_unused(sys.argv[1])"


def watch(home: Path) -> None:
    """Start the keeper of this folder unless it is there."""
    descriptor = _take(home / _LOCK, wait=False, create=True)
    if descriptor is None:
        return
    os.close(descriptor)
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, str(home), sys.executable],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    ).returncode = 0  # It outlives us on purpose; no warning that it still runs.


def _take(path: Path, *, wait: bool, create: bool = False) -> int | None:
    # The keeper itself never creates a file: the folder may be on its way to be removed.
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    descriptor = os.open(path, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _unused(home: Path) -> bool:
    """Say whether there is a server without users, looking while nobody starts or stops one."""
    start = _take(home / "start.lock", wait=True)
    users = _take(home / "users.lock", wait=False)
    running = (home / "data" / "postmaster.pid").exists()
    for descriptor in (users, start):
        if descriptor is not None:
            os.close(descriptor)
    return running and users is not None


def _keep(home: Path, python: str) -> None:
    if _take(home / _LOCK, wait=False) is None:
        return
    time.sleep(_INTERVAL)
    while (home / "data" / "postmaster.pid").exists() and not (home / "pinned").exists():
        if _unused(home):
            subprocess.run([python, "-I", "-c", _STOP, str(home)], check=False)
        time.sleep(_INTERVAL)


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):
        _keep(Path(sys.argv[1]), sys.argv[2])
