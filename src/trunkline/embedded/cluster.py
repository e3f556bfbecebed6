"""Create, start and stop the server of a data folder. Callers hold the start lock."""

import os
import pwd
import shutil
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import make_conninfo

from trunkline.embedded import postmaster
from trunkline.embedded.binaries import Binaries
from trunkline.embedded.directory import Directory, primary_group
from trunkline.embedded.folder import Folder
from trunkline.embedded.launcher import Launcher
from trunkline.errors import EmbeddedFolderUnsafe, EmbeddedStartFailed

__all__ = ["SUPERUSER", "accepts", "initialise", "move_data_aside", "peer", "start", "stop"]

SUPERUSER = "postgres"

_SETTINGS = {
    "checkpoint_timeout": "15min",
    "lc_messages": "C",
    "listen_addresses": "127.0.0.1",
    "log_timezone": "UTC",
    "max_connections": "100",
    "max_wal_size": "4GB",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "unix_socket_permissions": "0700",
}

# The socket needs no password: its directory and its own mode admit only the owner of the data. TCP
# is open to every local user, so it needs a password, and the superuser cannot log in over it.
_HBA = f"""\
# type  database     user         address         method
local   all          all                          trust
local   replication  all                          trust
host    all          {SUPERUSER}     127.0.0.1/32    reject
host    all          all          127.0.0.1/32    scram-sha-256
"""

_INCLUDE = "\ninclude_if_exists = 'trunkline.conf'\n"
_DRAFT = "data.new"
_LOG_LIMIT = 16 * 1024 * 1024
_POLL = 0.05

# Messages of PostgreSQL if an earlier server has not quite ended, or if another program took the
# port between our check and its start.
_PASSING = (
    "pre-existing shared memory block",
    'lock file "postmaster.pid" already exists',
    "could not create any TCP/IP sockets",
)


def initialise(folder: Folder, binaries: Binaries, launcher: Launcher) -> None:
    """Create the data folder under a temporary name: a killed initdb leaves no partial folder."""
    draft = folder.home / _DRAFT
    with folder.open() as home:
        _remove(home, _DRAFT)
        if home.owner != launcher.uid:
            # The account cannot create anything in root's folder, so root creates the directory.
            os.mkdir(_DRAFT, 0o700, dir_fd=home.descriptor)
            with home.enter(_DRAFT) as empty:
                os.fchown(empty.descriptor, launcher.uid, launcher.gid)
    if binaries.major >= 17:
        locale = ["--locale-provider=builtin", "--locale=C.UTF-8"]
    else:
        locale = ["--locale=C" if sys.platform == "darwin" else "--locale=C.UTF-8"]
    result = launcher.run(
        [
            binaries.program("initdb"),
            f"--pgdata={draft}",
            f"--username={SUPERUSER}",
            "--encoding=UTF8",
            "--auth=trust",
            *locale,
        ]
    )
    if result.returncode != 0:
        raise EmbeddedStartFailed("initdb failed", log=folder.log, tail=result.stdout)
    with folder.open() as home:
        with home.enter(_DRAFT) as made:
            made.replace("pg_hba.conf", _HBA)
            made.append("postgresql.conf", _INCLUDE)
        home.rename(_DRAFT, folder.data.name)


def _remove(home: Directory, name: str) -> None:
    """Remove leftovers of an earlier attempt."""
    if not home.exists(name):
        return
    try:
        home.enter(name).__exit__(None, None, None)
    except EmbeddedFolderUnsafe:
        home.remove(name)
    else:
        shutil.rmtree(name, ignore_errors=True, dir_fd=home.descriptor)


def start(
    folder: Folder,
    binaries: Binaries,
    launcher: Launcher,
    settings: Mapping[str, str],
    *,
    timeout: float,
    recovery_timeout: float,
) -> None:
    """Start the server and return when it accepts connections.

    ``timeout`` bounds the attempts to start a postmaster, ``recovery_timeout`` the time that a
    running one may take to replay its log after a crash.
    """
    if launcher.drops:
        # Fails in root's folder or if the directory exists; both cases are handled below.
        launcher.run(["/bin/sh", "-c", 'mkdir -m 700 -- "$0"', folder.socket_directory])
    folder.secure_socket_directory(launcher.uid)
    folder.rotate_log(_LOG_LIMIT)
    give_up = time.monotonic() + timeout
    lock = _server_lock(folder, timeout)
    try:
        folder.drop_stale_pid()
        _start(
            folder,
            binaries,
            launcher,
            settings,
            lock=lock,
            give_up=give_up,
            recovery_timeout=recovery_timeout,
        )
    finally:
        os.close(lock)


def _start(
    folder: Folder,
    binaries: Binaries,
    launcher: Launcher,
    settings: Mapping[str, str],
    *,
    lock: int,
    give_up: float,
    recovery_timeout: float,
) -> None:
    while True:
        offset = folder.log_size()
        _configure(folder, settings)
        # pg_ctl reports within its short timeout if the postmaster dies. A longer recovery is
        # waited for below.
        log = folder.open_log()
        try:
            launcher.run(
                [binaries.program("pg_ctl"), "start", "--wait", "--timeout=5", "-D", folder.data],
                log=log,
                inherit=[lock],
            )
        finally:
            os.close(log)
        if _wait_until_ready(folder, time.monotonic() + recovery_timeout):
            return
        tail = folder.log_tail(offset)
        if not any(message in tail for message in _PASSING) or time.monotonic() > give_up:
            raise EmbeddedStartFailed("The server did not start", log=folder.log, tail=tail)
        time.sleep(_POLL)


def stop(folder: Folder, *, timeout: float) -> None:
    """Stop the server if it runs. Its connections close, and open transactions roll back."""
    pid = folder.postmaster
    if pid is None:
        return
    give_up = time.monotonic() + timeout
    # The same as pg_ctl stop, which refuses to run as root.
    postmaster.interrupt(pid, lambda: folder.postmaster == pid)
    while folder.postmaster == pid:
        if time.monotonic() > give_up:
            tail = folder.log_tail(0)
            raise EmbeddedStartFailed("The server did not stop", log=folder.log, tail=tail)
        time.sleep(_POLL)


def move_data_aside(folder: Folder, *, timeout: float) -> Path:
    """Rename the data of a stopped server; return the new path. Call it under the start lock."""
    lock = _server_lock(folder, timeout)
    try:
        return folder.move_data_aside()
    finally:
        os.close(lock)


def _server_lock(folder: Folder, timeout: float) -> int:
    """Take the lock that every process of a server holds."""
    # After a kill -9 of the postmaster its children live on for a second or two.
    lock = folder.server_lock(timeout)
    if lock is None:
        raise EmbeddedStartFailed(
            "Processes of an earlier server still use the data, perhaps in another container",
            log=folder.log,
            tail=folder.log_tail(0),
        )
    return lock


def accepts(folder: Folder) -> bool:
    """Return whether the server accepts connections."""
    if folder.port is None:
        return False
    conninfo = make_conninfo(
        host=str(folder.socket_directory),
        port=folder.port,
        user=SUPERUSER,
        dbname="postgres",
        connect_timeout=5,
        requirepeer=peer(folder),
    )
    return pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK


def peer(folder: Folder) -> str | None:
    """Return the account that the server must run as (requirepeer), if it is not our own.

    The folder's owner could replace the socket with a link to another server's socket, for instance
    root's own, which needs no password. Root would then create roles and passwords there.
    """
    uid = folder.account
    if uid == os.geteuid():
        return None
    primary_group(uid)
    return pwd.getpwuid(uid).pw_name


def _wait_until_ready(folder: Folder, give_up: float) -> bool:
    while folder.postmaster is not None:
        if accepts(folder):
            return True
        if time.monotonic() > give_up:
            return False
        time.sleep(_POLL)
    return False


def _configure(folder: Folder, settings: Mapping[str, str]) -> None:
    folder.port = _free_port(folder.port)
    chosen = {
        **_SETTINGS,
        "port": str(folder.port),
        "unix_socket_directories": str(folder.socket_directory),
        **settings,
    }
    lines = [
        "# Rewritten at every start. Put your own settings into postgresql.conf after the include."
    ]
    lines += [f"{name} = {_quote(value)}" for name, value in sorted(chosen.items())]
    with folder.open_data() as data:
        if data is not None:
            data.replace("trunkline.conf", "\n".join(lines) + "\n")


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _free_port(remembered: int | None) -> int:
    """Return the port of the last start if it is still free, so that old DSNs stay valid."""
    for port in (remembered, 0):
        if port is None:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")
