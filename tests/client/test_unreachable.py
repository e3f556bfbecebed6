"""Servers that cannot be used: each has its class, its code, and a sentence on what to do."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.chaos import private_server
from tests.chaos.private_server import PrivateServer
from tests.client.twins import Twin
from tests.support import pgbouncer
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline import Trunkline
from trunkline.embedded import launcher
from trunkline.embedded.folder import Folder
from trunkline.errors import (
    AccessDenied,
    DatabaseReadOnly,
    DatabaseUnreachable,
    EmbeddedBinariesMissing,
    SchemaForbidden,
    ServerNotReady,
    TooManyConnections,
    TrunklineError,
)


def asked(dsn: str | None, *, blocking: bool) -> TrunklineError:
    """What an application with this connection string is told."""
    app = Trunkline(dsn)

    @app.task
    def work() -> None: ...

    with Twin(app, blocking=blocking) as twin, pytest.raises(TrunklineError) as caught:
        twin(twin.of(work).enqueue())
    return caught.value


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def blocking(request: pytest.FixtureRequest) -> bool:
    found: bool = request.param
    return found


def told(error: TrunklineError, kind: type[TrunklineError], sentence: str, hint: str) -> None:
    assert type(error) is kind
    assert sentence in str(error)
    assert "\n" not in str(error)
    assert hint in error.hint


@pytest.mark.parametrize(
    ("dsn", "sentence"),
    [
        ("host=127.0.0.1 port=1", "Connection refused"),
        ("postgresql://127.0.0.1:1/x", "Connection refused"),
        ("host=127.0.0.1,127.0.0.2 port=1", "Connection refused"),
        ("host=nowhere.invalid", "nowhere.invalid"),
        ("host=/nowhere", "No such file or directory"),
        ("hots=localhost", "did you mean the option host?"),
        ("nonsense", "cannot be read"),
        ("postgresql://[", "cannot be read"),
        ("", "empty"),
        ("  ", "empty"),
    ],
)
def test_no_server_there(dsn: str, sentence: str, *, blocking: bool) -> None:
    error = asked(dsn, blocking=blocking)
    told(error, DatabaseUnreachable, sentence, "TRUNKLINE_DSN")
    assert error.code == "database_unreachable"


def changed(database: Database, **changes: Any) -> str:
    return make_conninfo(database.dsn, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"host": "127.0.0.1", "password": "wrong"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1", "user": "postgres", "password": "x"},
        {"user": "nobody_of_that_name"},
    ],
    ids=["wrong password", "no password", "not that way", "no such user"],
)
def test_not_let_in(
    database: Database,
    changes: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    blocking: bool,
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("PGPASSFILE", os.devnull)
    error = asked(changed(database, **changes), blocking=blocking)
    told(error, AccessDenied, "", "password")
    # The server's own sentence, without what the driver puts before it.
    assert "FATAL" not in str(error)
    assert error.code == "access_denied"
    assert "wrong" not in str(error)


def test_no_such_database(database: Database, *, blocking: bool) -> None:
    error = asked(changed(database, dbname="no_such_database"), blocking=blocking)
    assert error.code == "database_unreachable"
    told(error, DatabaseUnreachable, '"no_such_database" does not exist', "TRUNKLINE_DSN")


def test_a_role_without_rights(database: Database, *, blocking: bool) -> None:
    superuser = database.superuser()
    role = f"stranger_{database.name[-8:]}"
    superuser.execute(f"create role {role} login")
    try:
        error = asked(changed(database, user=role), blocking=blocking)
    finally:
        superuser.execute(f"drop role {role}")
    assert error.code == "schema_forbidden"
    told(error, SchemaForbidden, "may not use the schema", "trunkline_producer")


def test_no_connection_left(database: Database, *, blocking: bool) -> None:
    database.superuser().execute(f"alter database {database.name} connection limit 0")
    error = asked(database.dsn, blocking=blocking)
    told(error, TooManyConnections, "too many connections", "max_connections")
    assert error.code == "too_many_connections"


def test_read_only(database: Database, *, blocking: bool) -> None:
    """As on a standby. Direct connections set the mode themselves, those to a pooler cannot."""
    database.superuser().execute(
        f"alter database {database.name} set default_transaction_read_only = on"
    )
    with pgbouncer.start(database.server) as pooler:
        error = asked(pooler.dsn(database.dsn), blocking=blocking)
    told(error, DatabaseReadOnly, "read-only transaction", "target_session_attrs=read-write")
    assert error.code == "database_read_only"


def test_neither_a_connection_string_nor_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, blocking: bool
) -> None:
    monkeypatch.delenv("TRUNKLINE_DSN", raising=False)
    monkeypatch.setenv("TRUNKLINE_HOME", str(tmp_path))
    monkeypatch.setenv("TRUNKLINE_PG_BINDIR", str(tmp_path))
    error = asked(None, blocking=blocking)
    told(error, EmbeddedBinariesMissing, str(tmp_path), "TRUNKLINE_DSN")
    assert error.code == "embedded_binaries_missing"


def test_after_the_mistake_is_fixed_the_same_application_works(database: Database) -> None:
    database.superuser().execute(f"alter database {database.name} connection limit 0")
    with Trunkline(database.dsn).sync as client:
        with pytest.raises(TooManyConnections):
            client.jobs.list()
        database.superuser().execute(f"alter database {database.name} connection limit -1")
        assert client.jobs.list() == []


@contextmanager
def private(tmp_path: Path, server: Server) -> Iterator[tuple[PrivateServer, Database]]:
    with private_server.running(tmp_path, server.major) as made, made.database() as database:
        yield made, database


@contextmanager
def as_standby(running: PrivateServer, *, hot: bool) -> Iterator[None]:
    """Start it as a standby that waits for a primary nobody runs."""
    if running.up:
        running.stop()
    signal_file = running.data / "standby.signal"
    signal_file.touch()
    folder = Folder(running.data.parent)
    programs = Path(running.server.bindir)
    owner = launcher.choose(folder, programs / "postgres")
    os.chown(signal_file, owner.uid, owner.gid)
    log = folder.open_log()
    owner.run(
        [
            programs / "pg_ctl",
            "start",
            "--no-wait",
            "-D",
            running.data,
            "-o",
            f"-c hot_standby={'on' if hot else 'off'}",
        ],
        log=log,
    )
    os.close(log)
    try:
        yield
    finally:
        running.stop(signal.SIGQUIT)
        signal_file.unlink()


def _says(dsn: str, sentence: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError as error:
        return sentence in str(error)
    return sentence == "welcome"


def test_a_server_in_recovery_and_one_that_is_frozen(tmp_path: Path, server: Server) -> None:
    with private(tmp_path, server) as (running, database):
        with as_standby(running, hot=False):
            until(lambda: _says(database.dsn, "not accepting"), "the server is in recovery")
            for blocking in (False, True):
                error = asked(database.dsn, blocking=blocking)
                told(error, ServerNotReady, "not accepting connections", "Wait")
                assert error.code == "server_not_ready"
        with as_standby(running, hot=True):
            until(lambda: _says(database.dsn, "welcome"), "the standby is up")
            for blocking in (False, True):
                error = asked(database.dsn, blocking=blocking)
                assert type(error) is DatabaseReadOnly
                assert "target_session_attrs" in error.hint
                only_primaries = make_conninfo(database.dsn, target_session_attrs="read-write")
                told(asked(only_primaries, blocking=blocking), DatabaseReadOnly, "", "primary")
        running.start()
        pid = int(str((running.data / "postmaster.pid").read_text().splitlines()[0]))
        os.kill(pid, signal.SIGSTOP)
        try:
            for blocking in (False, True):
                error = asked(make_conninfo(database.dsn, connect_timeout=2), blocking=blocking)
                told(error, DatabaseUnreachable, "timeout", "TRUNKLINE_DSN")
        finally:
            os.kill(pid, signal.SIGCONT)
        assert conninfo_to_dict(database.dsn)["host"]
