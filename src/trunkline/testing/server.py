"""The server that all sandboxes of a process share, started with the first one."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from threading import Lock
from typing import Final

from trunkline.db.disposable import ensure_template
from trunkline.embedded import EmbeddedServer, acquire
from trunkline.embedded.server import INSTALLER

__all__ = ["INSTALLER", "leave", "running", "share"]

# The data need not survive the run, so nothing has to reach the disk.
_SETTINGS: Final = {
    "autovacuum_naptime": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "300",
    "synchronous_commit": "off",
}


class _Server:
    def __init__(self) -> None:
        self.lock = Lock()
        self.server: EmbeddedServer | None = None
        self.shared: Path | None = None
        self.own: Path | None = None


_here = _Server()


def share(home: Path) -> None:
    """Use the server in a folder that several processes share."""
    _here.shared = home


def running() -> EmbeddedServer:
    """Return the server with a template database; the first use starts it."""
    with _here.lock:
        if _here.server is None:
            home = _here.shared
            if home is None:
                home = _here.own = Path(tempfile.mkdtemp(prefix="trunkline-sandbox-"))
                # Registered before the server's own exit handler, so that it runs after that one.
                atexit.register(_remove, home, os.getpid())
            server = acquire(home, settings=_SETTINGS)
            ensure_template(server.superuser_dsn, INSTALLER)
            _here.server = server
        return _here.server


def leave() -> None:
    """Stop the server unless another process uses it; the next sandbox starts it again."""
    with _here.lock:
        server, _here.server = _here.server, None
        if server is not None:
            server.close()
        own, _here.own = _here.own, None
        if own is not None:
            _remove(own, os.getpid())


def _remove(home: Path, process: int) -> None:
    # A fork inherits the exit handlers, but must not remove the folder.
    if os.getpid() == process:
        shutil.rmtree(home, ignore_errors=True)
