"""PgBouncer in transaction mode, started by a test in front of one of the suite's servers."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.support.servers import Server
from tests.support.waiting import until
from trunkline.embedded.folder import Folder
from trunkline.embedded.launcher import Launcher, choose

__all__ = ["PROGRAM", "PgBouncer", "start"]

PROGRAM = Path("/usr/sbin/pgbouncer")

# Only part of the socket's name: the socket is in its own folder, so no port is used.
_PORT = 6432

# Debian's defaults: no startup parameter is ignored, and prepared statements are not supported. So
# a test that passes here passes with any configuration.
_SETTINGS = """\
[databases]
* = host={host} port={port}
[pgbouncer]
pool_mode = transaction
default_pool_size = {size}
max_client_conn = 500
auth_type = trust
auth_file = {folder}/users
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0700
listen_port = {own}
logfile = {folder}/log
admin_users = postgres
query_wait_timeout = 120
server_check_delay = 0
server_login_retry = 1
"""


class PgBouncer:
    """A running pooler for the databases of a server."""

    def __init__(self, folder: Path, account: Launcher) -> None:
        self.folder = folder
        self._account = account
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, always at the same address, and wait until it answers."""
        account = self._account
        drop = account.uid != os.geteuid() and not account.prefix
        self.process = subprocess.Popen(
            [*account.prefix, PROGRAM, "--quiet", self.folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            user=account.uid if drop else None,
            group=account.gid if drop else None,
            extra_groups=[] if drop else None,
        )
        until(self._answers, "PgBouncer answers")

    def stop(self) -> None:
        """Kill it, and every connection through it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def dsn(self, dsn: str) -> str:
        """Return the connection string for the same database through the pooler."""
        fields = conninfo_to_dict(dsn)
        return f"postgresql://{fields['user']}@/{fields['dbname']}?host={self.folder}&port={_PORT}"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def shows(self, subject: str) -> list[dict[str, object]]:
        """Run SHOW in the admin console, for instance for ``pools``."""
        with psycopg.connect(
            self.dsn("user=postgres dbname=pgbouncer"),
            autocommit=True,
            # The console supports only the simple protocol.
            cursor_factory=psycopg.ClientCursor,
            row_factory=psycopg.rows.dict_row,
        ) as console:
            return console.execute(f"show {subject}".encode()).fetchall()

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "PgBouncer ended"
        try:
            self.shows("version")
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def start(server: Server, *, size: int = 3) -> Iterator[PgBouncer]:
    """Start a pooler with `size` server connections per database, and stop it at the end."""
    upstream = conninfo_to_dict(server.superuser_dsn)
    account = _account(server)
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        folder = Path(name)
        (folder / "users").write_text('"trunkline_installer" ""\n"postgres" ""\n', encoding="ascii")
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            _SETTINGS.format(
                host=upstream["host"], port=upstream["port"], size=size, folder=folder, own=_PORT
            ),
            encoding="ascii",
        )
        for path in (folder, *folder.iterdir()):
            os.chown(path, account.uid, account.gid)
        pooler = PgBouncer(folder, account)
        try:
            pooler.start()
            yield pooler
        finally:
            pooler.stop()


def _account(server: Server) -> Launcher:
    """Return the server's account: PgBouncer refuses root too, and the socket is private."""
    with psycopg.connect(server.superuser_dsn) as connection:
        row = connection.execute("show data_directory").fetchone()
    assert row is not None
    return choose(Folder(Path(row[0]).parent), PROGRAM)
