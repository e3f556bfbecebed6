"""The servers of the suite: the main process of pytest starts them once for all workers.

``TRUNKLINE_TEST_SERVERS`` (for instance ``18``, default ``15,18``) limits them.
"""

import json
import os
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
import pytest

from trunkline.embedded import EmbeddedServer, acquire
from trunkline.embedded.server import INSTALLER

DEBIAN_15 = Path("/usr/lib/postgresql/15/bin")

# The key under which a pytest process keeps the list.
STASH = pytest.StashKey[list["Server"]]()

# The data need not survive the run, so nothing has to reach the disk.
SETTINGS = {
    "autovacuum_naptime": "1h",
    "fsync": "off",
    "full_page_writes": "off",
    # Debian's server would compile plans that it takes for expensive, 100 ms each; the embedded one
    # cannot.
    "jit": "off",
    "max_connections": "300",
    "synchronous_commit": "off",
}


_MEMORY = "/dev/shm"  # noqa: S108
# Enough for two servers with a gigabyte of WAL each, and the data of the tests.
_ROOM = 8 << 30


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server on which the installer may only create roles and databases."""

    major: int
    superuser_dsn: str
    installer_dsn: str
    bindir: str

    @property
    def label(self) -> str:
        return f"pg{self.major}"

    @property
    def copy_strategy(self) -> str:
        """How to copy a template.

        A copy of the files begins with a checkpoint, which costs nothing in memory: creating and
        dropping a database took 27 ms of processor time instead of 45, and the first connection
        finds the cache of the catalogue. On a disk the log is faster.
        """
        return "file_copy" if _MEMORY in self.superuser_dsn else "wal_log"

    def dsn(self, database: str, *, superuser: bool = False) -> str:
        """Return the connection string of another database on this server."""
        base = self.superuser_dsn if superuser else self.installer_dsn
        return base.replace("@/trunkline?", f"@/{database}?")


def majors() -> list[int]:
    """Return the major versions that this run uses."""
    versions = os.environ.get("TRUNKLINE_TEST_SERVERS", "15,18")
    return sorted({int(version) for version in versions.split(",")})


def memory() -> str | None:
    """Return a folder in memory, if it has enough room.

    A database for each test creates and removes a thousand files: on ext4 a copy took 180 ms
    instead of 30. The path is short, because paths of Unix sockets must be.
    """
    with suppress(OSError):
        if shutil.disk_usage(_MEMORY).free > _ROOM and os.access(_MEMORY, os.W_OK):
            return _MEMORY
    return None


class Servers:
    """Starts the servers in a temporary folder and removes it at the end."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="trunkline-", dir=memory()))
        self._stack = ExitStack()
        try:
            with ThreadPoolExecutor() as pool:
                self.servers = list(pool.map(self._start, majors()))
        except BaseException:
            self.close()
            raise

    def _start(self, major: int) -> Server:
        bindir = DEBIAN_15 if major == 15 else None
        if bindir and not bindir.exists():
            raise pytest.UsageError(
                f"{bindir} is missing: run tools/system_packages.sh, or leave PostgreSQL 15 out "
                "with TRUNKLINE_TEST_SERVERS=18"
            )
        home = self._folder / f"pg{major}"
        embedded = self._stack.enter_context(acquire(home, bindir=bindir, settings=SETTINGS))
        _require_major(embedded, major)
        server = Server(major, embedded.superuser_dsn, embedded.dsn, str(embedded.bindir))
        let_create_databases(server)
        return server

    def close(self) -> None:
        self._stack.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def let_create_databases(server: Server) -> None:
    """Allow the installer to create databases, which tests need."""
    with psycopg.connect(server.superuser_dsn, autocommit=True) as connection:
        connection.execute(f"alter role {INSTALLER} createdb")


def _require_major(embedded: EmbeddedServer, major: int) -> None:
    version = int((embedded.folder.data / "PG_VERSION").read_text())
    if version != major:
        raise pytest.UsageError(
            f"The embedded server is PostgreSQL {version}, not {major}; "
            "TRUNKLINE_TEST_SERVERS may name 15 and the embedded version"
        )


def dump(servers: list[Server]) -> str:
    """Encode the list for a worker process of pytest-xdist."""
    return json.dumps([asdict(server) for server in servers])


def load(text: str) -> list[Server]:
    return [Server(**fields) for fields in json.loads(text)]
