"""A user of the server: join, get a connection string, leave."""

import atexit
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import LiteralString, Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from trunkline.embedded import binaries, cluster, keeper, launcher
from trunkline.embedded.folder import Folder

__all__ = ["DATABASE", "INSTALLER", "EmbeddedServer", "acquire", "connection_string"]

DATABASE = "trunkline"
# Has the privileges that a managed service would give you: it can create roles and owns its
# database.
INSTALLER = "trunkline_installer"

_START_TIMEOUT = 60.0
_RECOVERY_TIMEOUT = 600.0
STOP_TIMEOUT = 60.0


def acquire(
    home: Path | str | None = None,
    *,
    bindir: Path | str | None = None,
    settings: Mapping[str, str] | None = None,
) -> "EmbeddedServer":
    """Become a user of the server in ``home`` and start it if it is down.

    ``bindir`` and ``settings`` apply only if this call starts the server.
    """
    return EmbeddedServer(
        Path(home) if home else None,
        bindir=Path(bindir) if bindir else None,
        settings=settings or {},
    )


class EmbeddedServer:
    """One user of the server. Closing the last user stops the server."""

    def __init__(
        self, home: Path | None, *, bindir: Path | None, settings: Mapping[str, str]
    ) -> None:
        self.folder = Folder(home)
        self._bindir = bindir
        self._settings = dict(settings)
        self._process = os.getpid()
        self._membership: int | None = None
        self.folder.create()
        with self.folder.start_lock():
            self._membership = self.folder.join()
            try:
                self._bring_up()
            except BaseException:
                self._leave()
                raise
            if not self.folder.pinned:
                with self.folder.open() as directory:
                    keeper.watch(directory)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def dsn(self) -> str:
        """The connection string of the installer role, over the Unix socket."""
        return connection_string(self.folder)

    @property
    def superuser_dsn(self) -> str:
        """The connection string of the superuser. Trunkline itself does not need it."""
        return connection_string(self.folder, user=cluster.SUPERUSER)

    @property
    def bindir(self) -> Path:
        """The folder of the PostgreSQL programs that match the data."""
        return binaries.find(self.folder.data, self.folder.data_version, self._bindir).directory

    @property
    def pid(self) -> int | None:
        """The process id of the postmaster."""
        return self.folder.postmaster

    def ensure_running(self) -> None:
        """Start the server again if it died, for instance by a kill -9."""
        with self.folder.start_lock():
            self._bring_up()

    def close(self) -> None:
        """Leave; the last user stops the server unless it is pinned. Idempotent."""
        # After a fork the membership belongs to the parent.
        if self._membership is None or self._process != os.getpid():
            return
        atexit.unregister(self.close)
        with self.folder.start_lock():
            self._leave()

    def _leave(self) -> None:
        membership, self._membership = self._membership, None
        if membership is not None and self.folder.leave(membership) and not self.folder.pinned:
            cluster.stop(self.folder, timeout=STOP_TIMEOUT)

    def _bring_up(self) -> None:
        folder = self.folder
        if folder.postmaster is not None and cluster.accepts(folder):
            return
        found = binaries.find(folder.data, folder.data_version, self._bindir)
        runner = launcher.choose(folder, found.program("postgres"))
        if not folder.has_data:
            cluster.initialise(folder, found, runner)
        cluster.start(
            folder,
            found,
            runner,
            self._settings,
            timeout=_START_TIMEOUT,
            recovery_timeout=_RECOVERY_TIMEOUT,
        )
        _prepare(folder)


def connection_string(folder: Folder, *, user: str = INSTALLER, tcp: bool = False) -> str:
    """Return a URI that every libpq program accepts. For the socket it contains no password."""
    if tcp:
        password = f":{quote(folder.password or '', safe='')}"
        return f"postgresql://{user}{password}@127.0.0.1:{folder.port}/{DATABASE}"
    where = {"host": str(folder.socket_directory), "port": str(folder.port)}
    peer = cluster.peer(folder)
    if peer is not None:
        where["requirepeer"] = peer
    place = urlencode(where, quote_via=quote)
    return f"postgresql://{user}@/{DATABASE}?{place}"


def _prepare(folder: Folder) -> None:
    """Create the installer role and its database if they are missing."""
    dsn = connection_string(folder, user=cluster.SUPERUSER).replace(f"/{DATABASE}?", "/postgres?")
    with psycopg.connect(dsn, autocommit=True) as connection:
        role = sql.Identifier(INSTALLER)
        database = sql.Identifier(DATABASE)
        if not _exists(connection, "select 1 from pg_roles where rolname = %s", INSTALLER):
            connection.execute(sql.SQL("create role {} login createrole").format(role))
            folder.new_password()
            _set_password(connection, folder)
        elif folder.password is None:
            folder.new_password()
            _set_password(connection, folder)
        if not _exists(connection, "select 1 from pg_database where datname = %s", DATABASE):
            connection.execute(sql.SQL("create database {} owner {}").format(database, role))


def _exists(connection: psycopg.Connection, query: LiteralString, name: str) -> bool:
    return connection.execute(query, (name,)).fetchone() is not None


def _set_password(connection: psycopg.Connection, folder: Folder) -> None:
    # Hashed in the client, so that the server's log never contains it.
    password = connection.pgconn.encrypt_password(
        (folder.password or "").encode(), INSTALLER.encode(), b"scram-sha-256"
    )
    connection.execute(
        sql.SQL("alter role {} password {}").format(
            sql.Identifier(INSTALLER), sql.Literal(password.decode())
        )
    )
