"""Make, start and stop the data folder's server. All of it is called under the start lock."""

import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import make_conninfo

from trunkline.embedded import postmaster
from trunkline.embedded.binaries import Binaries
from trunkline.embedded.folder import Folder
from trunkline.embedded.launcher import Launcher
from trunkline.errors import EmbeddedStartFailed

__all__ = ["SUPERUSER", "accepts", "initialise", "start", "stop"]

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

# The socket asks nothing: its directory and its own mode admit only the owner of the data. TCP is
# open to every local user, so it asks for a password, and the superuser cannot come that way.
_HBA = f"""\
# type  database     user         address         method
local   all          all                          trust
local   replication  all                          trust
host    all          {SUPERUSER}     127.0.0.1/32    reject
host    all          all          127.0.0.1/32    scram-sha-256
"""

_INCLUDE = "\ninclude_if_exists = 'trunkline.conf'\n"
_LOG_LIMIT = 16 * 1024 * 1024
_POLL = 0.05

# What PostgreSQL says while an earlier server is not quite gone, or when the port was taken between
# our look and its start.
_PASSING = (
    "pre-existing shared memory block",
    'lock file "postmaster.pid" already exists',
    "could not create any TCP/IP sockets",
)


def initialise(folder: Folder, binaries: Binaries, launcher: Launcher) -> None:
    """Make the data folder, in a temporary one first: a killed initdb leaves nothing half made."""
    draft = folder.home / "data.new"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    launcher.own(draft)
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
    (draft / "pg_hba.conf").write_text(_HBA, encoding="ascii")
    with (draft / "postgresql.conf").open("a", encoding="ascii") as file:
        file.write(_INCLUDE)
    draft.rename(folder.data)


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

    ``timeout`` bounds the attempts to get a postmaster, ``recovery_timeout`` the time that a
    living one may take to replay its log after a crash.
    """
    folder.create_socket_directory(launcher.uid, launcher.gid)
    _rotate_log(folder.log)
    give_up = time.monotonic() + timeout
    # After a kill -9 of the postmaster its children live on for a second or two.
    lock = folder.server_lock(timeout)
    if lock is None:
        raise EmbeddedStartFailed(
            "Processes of an earlier server still use the data, perhaps in another container",
            log=folder.log,
            tail=_tail(folder.log, 0),
        )
    try:
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
        offset = folder.log.stat().st_size if folder.log.exists() else 0
        _configure(folder, launcher, settings)
        # It says itself within its own short wait when the postmaster dies; a longer recovery
        # is waited for below.
        launcher.run(
            [binaries.program("pg_ctl"), "start", "--wait", "--timeout=5", "-D", folder.data],
            log=folder.log,
            inherit=[lock],
        )
        if _wait_until_ready(folder, time.monotonic() + recovery_timeout):
            return
        tail = _tail(folder.log, offset)
        if not any(message in tail for message in _PASSING) or time.monotonic() > give_up:
            raise EmbeddedStartFailed("The server did not start", log=folder.log, tail=tail)
        time.sleep(_POLL)


def stop(folder: Folder, *, timeout: float) -> None:
    """Stop the server if it runs: connections are ended, transactions rolled back."""
    pid = postmaster.find(folder.data)
    if pid is None:
        return
    give_up = time.monotonic() + timeout
    # What pg_ctl stop does; pg_ctl itself refuses to run as root.
    os.kill(pid, signal.SIGINT)
    while postmaster.find(folder.data) == pid:
        if time.monotonic() > give_up:
            tail = _tail(folder.log, 0)
            raise EmbeddedStartFailed("The server did not stop", log=folder.log, tail=tail)
        time.sleep(_POLL)


def accepts(folder: Folder) -> bool:
    """Say whether a connection gets an answer other than "not now"."""
    if folder.port is None:
        return False
    conninfo = make_conninfo(
        host=str(folder.socket_directory),
        port=folder.port,
        user=SUPERUSER,
        dbname="postgres",
        connect_timeout=5,
    )
    return pq.PGconn.ping(conninfo.encode()) == pq.Ping.OK


def _wait_until_ready(folder: Folder, give_up: float) -> bool:
    while postmaster.find(folder.data) is not None:
        if accepts(folder):
            return True
        if time.monotonic() > give_up:
            return False
        time.sleep(_POLL)
    return False


def _configure(folder: Folder, launcher: Launcher, settings: Mapping[str, str]) -> None:
    folder.port = _free_port(folder.port)
    chosen = {
        **_SETTINGS,
        "port": str(folder.port),
        "unix_socket_directories": str(folder.socket_directory),
        **settings,
    }
    path = folder.data / "trunkline.conf"
    lines = [
        "# Written at every start; put your own settings into postgresql.conf after the include."
    ]
    lines += [f"{name} = {_quote(value)}" for name, value in sorted(chosen.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    launcher.own(path)


def _quote(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"


def _free_port(remembered: int | None) -> int:
    """Return the port of the last start if it is still free, so that strings stay valid."""
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


def _rotate_log(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_LIMIT:
        log.replace(log.with_suffix(".log.old"))


def _tail(log: Path, offset: int) -> str:
    """Return what was logged since the offset, at most the last 2,000 characters."""
    try:
        with log.open("rb") as file:
            file.seek(offset)
            return file.read().decode("utf-8", "replace")[-2000:]
    except FileNotFoundError:
        return ""
