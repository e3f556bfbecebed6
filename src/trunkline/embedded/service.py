"""Manage the server without using it: pin it, stop it, reset it, show its status."""

from dataclasses import dataclass
from pathlib import Path

from trunkline.embedded import binaries, cluster
from trunkline.embedded.folder import Folder
from trunkline.embedded.server import STOP_TIMEOUT, acquire, connection_string
from trunkline.errors import EmbeddedInUse, EmbeddedNotRunning

__all__ = ["Status", "dsn", "pin", "psql_program", "reset", "status", "stop", "stop_if_unused"]


@dataclass(frozen=True, slots=True)
class Status:
    """The status of the server, as ``trunkline db status`` shows it."""

    home: Path
    running: bool
    pid: int | None
    port: int | None
    version: str | None
    pinned: bool
    in_use: bool
    log: Path


def pin(home: Path | str | None = None) -> Status:
    """Start the server if it is down, and keep it up when the last user leaves."""
    with acquire(home) as server:
        server.folder.pinned = True
    return status(home)


def stop(home: Path | str | None = None, *, force: bool = False) -> bool:
    """Stop the server and remove the pin; return whether it was running.

    With ``force`` it stops even if other processes use it; they lose their connections.
    """
    folder = Folder(Path(home) if home else None)
    if not folder.home.exists():
        return False
    with folder.start_lock():
        return _stop(folder, force=force)


def reset(home: Path | str | None = None, *, force: bool = False) -> Path | None:
    """Stop the server and move its data aside; return the new path, or None if there is no data.

    The next start creates new data. With ``force`` this works even if other processes use the
    server.
    """
    folder = Folder(Path(home) if home else None)
    if not folder.home.exists():
        return None
    with folder.start_lock():
        if not folder.has_data:
            return None
        _stop(folder, force=force)
        return cluster.move_data_aside(folder, timeout=STOP_TIMEOUT)


def _stop(folder: Folder, *, force: bool) -> bool:
    """Stop the server and return whether it was running. Callers hold the start lock."""
    running = folder.postmaster is not None
    if running and not force and folder.has_users():
        raise EmbeddedInUse("Other processes use the embedded server")
    folder.pinned = False
    cluster.stop(folder, timeout=STOP_TIMEOUT)
    return running


def stop_if_unused(home: Path | str) -> None:
    """Stop the server if it has no users and no pin, because its users were killed."""
    folder = Folder(Path(home))
    with folder.start_lock():
        if not folder.pinned and not folder.has_users():
            cluster.stop(folder, timeout=STOP_TIMEOUT)


def status(home: Path | str | None = None) -> Status:
    """Return the status without creating the folder or starting the server."""
    folder = Folder(Path(home) if home else None)
    pid = folder.postmaster
    running = pid is not None and cluster.accepts(folder)
    return Status(
        home=folder.home,
        running=running,
        pid=pid if running else None,
        port=folder.port,
        version=folder.data_version,
        # A pin without a running server has no effect.
        pinned=running and folder.pinned,
        in_use=running and folder.has_users(),
        log=folder.log,
    )


def dsn(home: Path | str | None = None, *, tcp: bool = False) -> str:
    """Return the connection string of a server that was started at least once."""
    folder = Folder(Path(home) if home else None)
    if folder.port is None:
        raise EmbeddedNotRunning(f"There is no server in {folder.home} yet")
    return connection_string(folder, tcp=tcp)


def psql_program(home: Path | str | None = None) -> Path | None:
    """Return the psql of the server's programs, or None: some carriers have none."""
    folder = Folder(Path(home) if home else None)
    program = binaries.find(folder.data, folder.data_version).program("psql")
    return program if program.exists() else None
