"""Stops the server if its last user was killed and could not stop it.

One small process per server, started with it. Every two seconds it checks whether any process holds
the users' lock, which the kernel releases when its holder dies. It holds the start lock while it
checks, so that it never interferes with a user that joins or leaves. It runs as a script with only
the standard library, because it lives as long as the server. A separate process stops the server.
"""

import contextlib
import fcntl
import os
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trunkline.embedded.directory import Directory

__all__ = ["watch"]

_INTERVAL = 2.0
_LOCK = "keeper.lock"
_STOP = "import sys; from trunkline.embedded import service; service.stop_if_unused(sys.argv[1])"


def watch(home: "Directory") -> None:
    """Start the keeper of this folder unless it already runs."""
    descriptor = home.open(_LOCK, os.O_RDWR, create=True)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    finally:
        os.close(descriptor)
    # The keeper inherits the open folder, because the path may lead elsewhere when it starts.
    arguments = [str(home.descriptor), str(home.path), sys.executable]
    subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=[home.descriptor],
        cwd="/",
    ).returncode = 0  # It outlives us on purpose; no warning that it still runs.


def _take(home: int, name: str, *, wait: bool) -> int | None:
    """Lock a file of the folder. Like ``Directory.open``, but uses only the standard library."""
    # The keeper never creates a file: another process may be removing the folder.
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=home)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.fstat(home).st_uid:
            raise FileNotFoundError(name)
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _unused(home: int) -> bool:
    """Return whether a server runs without users. Holds the start lock during the check."""
    start = _take(home, "start.lock", wait=True)
    users = _take(home, "users.lock", wait=False)
    running = _exists(home, "data/postmaster.pid")
    for descriptor in (users, start):
        if descriptor is not None:
            os.close(descriptor)
    return running and users is not None


def _exists(home: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=home)
    except OSError:
        return False
    return True


def _keep(home: int, path: str, python: str) -> None:
    if _take(home, _LOCK, wait=False) is None:
        return
    time.sleep(_INTERVAL)
    while _exists(home, "data/postmaster.pid") and not _exists(home, "pinned"):
        if _unused(home):
            subprocess.run([python, "-I", "-c", _STOP, path], check=False)
        time.sleep(_INTERVAL)


if __name__ == "__main__":
    with contextlib.suppress(OSError):
        _keep(int(sys.argv[1]), sys.argv[2], sys.argv[3])
