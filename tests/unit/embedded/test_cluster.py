"""Making, starting and stopping a server, with programs that are made up."""

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import psycopg
import pytest

from trunkline.embedded import cluster, postmaster, server
from trunkline.embedded.binaries import Binaries
from trunkline.embedded.folder import Folder
from trunkline.errors import EmbeddedStartFailed


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "home")
    made.create()
    return made


def _locked(folder: Folder, name: str = "start.lock") -> bool:
    with (folder.home / name).open("r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


class Programs:
    """A launcher that plays initdb and pg_ctl."""

    def __init__(self, folder: Folder, *steps: Callable[[], Any]) -> None:
        self.folder = folder
        self.ran: list[list[str]] = []
        self.steps = list(steps)
        self.uid, self.gid, self.drops = os.geteuid(), os.getegid(), False
        self.code = 0

    def run(self, arguments: Any, **_: Any) -> Any:
        self.ran.append([str(argument) for argument in arguments])
        if self.steps:
            self.steps.pop(0)()
        return subprocess.CompletedProcess([], self.code, "said")


@pytest.mark.parametrize(
    ("major", "locale"),
    [
        (18, ["--locale-provider=builtin", "--locale=C.UTF-8"]),
        (17, ["--locale-provider=builtin", "--locale=C.UTF-8"]),
        (16, ["--locale=C.UTF-8"]),
    ],
)
def test_data_is_created_under_another_name(folder: Folder, major: int, locale: list[str]) -> None:
    draft = folder.home / "data.new"
    (draft / "left over").mkdir(parents=True)

    def initdb() -> None:
        assert not draft.exists()
        draft.mkdir(mode=0o700)
        (draft / "postgresql.conf").touch(mode=0o600)

    programs: Any = Programs(folder, initdb)
    cluster.initialise(folder, Binaries(Path("/b"), major), programs)
    ((program, data, *rest),) = programs.ran
    assert (program, data) == ("/b/initdb", f"--pgdata={draft}")
    assert rest == ["--username=postgres", "--encoding=UTF8", "--auth=trust", *locale]
    assert "reject" in (folder.data / "pg_hba.conf").read_text()
    included = (folder.data / "postgresql.conf").read_text()
    assert included == "\ninclude_if_exists = 'trunkline.conf'\n"
    assert not draft.exists()


def test_a_failed_initdb_is_reported_with_its_output(folder: Folder) -> None:
    programs: Any = Programs(folder)
    programs.code = 1
    with pytest.raises(EmbeddedStartFailed) as failed:
        cluster.initialise(folder, Binaries(Path("/b"), 18), programs)
    assert "initdb failed" in str(failed.value)
    assert "said" in f"{failed.value} {failed.value.hint}"
    assert not folder.has_data


def _log(folder: Folder, text: str) -> None:
    with folder.log.open("a") as file:
        file.write(text)
    folder.log.chmod(0o600)


class Starts:
    """A data folder whose server starts when the test says so."""

    def __init__(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.data.mkdir(mode=0o700)
        self.folder = folder
        self.ready = False
        self.alive = False
        self.pauses: list[float] = []
        monkeypatch.setattr(Folder, "postmaster", property(lambda _: 7 if self.alive else None))
        monkeypatch.setattr(cluster, "accepts", lambda _: self.ready)
        monkeypatch.setattr(time, "sleep", self._pause)
        # What happens during a pause.
        self.meanwhile: Callable[[], None] = lambda: None

    def start(self, programs: Any, *, timeout: float = 60.0, recovery: float = 60.0) -> None:
        found = Binaries(Path("/b"), 18)
        cluster.start(
            *(self.folder, found, programs, {}), timeout=timeout, recovery_timeout=recovery
        )

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.meanwhile()

    def come_up(self) -> None:
        assert _locked(self.folder, "server.lock")
        self.alive = self.ready = True


@pytest.fixture
def starts(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Starts:
    return Starts(folder, monkeypatch)


def test_a_server_is_started_with_its_settings(starts: Starts) -> None:
    starts.folder.log.write_text("x" * (16 * 1024 * 1024 + 1))
    starts.folder.log.chmod(0o600)
    (starts.folder.data / "postmaster.pid").write_text(f"{os.getpid()}\n")
    programs = Programs(starts.folder, starts.come_up)
    starts.start(programs)
    data = str(starts.folder.data)
    assert programs.ran == [["/b/pg_ctl", "start", "--wait", "--timeout=5", "-D", data]]
    assert (starts.folder.data / "trunkline.conf").exists()
    assert not (starts.folder.data / "postmaster.pid").exists()
    assert (starts.folder.home / "postgres.log.old").exists()
    assert starts.folder.socket_directory.exists()
    assert not _locked(starts.folder, "server.lock")
    assert starts.pauses == []


@pytest.mark.parametrize("passing", cluster._PASSING)  # noqa: SLF001
def test_a_passing_failure_is_tried_again(starts: Starts, passing: str) -> None:
    starts.start(Programs(starts.folder, lambda: _log(starts.folder, passing), starts.come_up))
    assert starts.pauses == [0.05]


def test_a_lasting_failure_is_reported_with_the_log(starts: Starts) -> None:
    _log(starts.folder, f"before: {cluster._PASSING[0]}")  # noqa: SLF001
    programs = Programs(starts.folder, lambda: _log(starts.folder, "bad setting"))
    with pytest.raises(EmbeddedStartFailed) as failed:
        starts.start(programs)
    assert "The server did not start" in str(failed.value)
    assert "bad setting" in f"{failed.value} {failed.value.hint}"
    assert "before" not in f"{failed.value} {failed.value.hint}"
    assert len(programs.ran) == 1
    # A passing one, when the time is over.
    again = Programs(
        starts.folder,
        lambda: _log(starts.folder, cluster._PASSING[0]),  # noqa: SLF001
    )
    with pytest.raises(EmbeddedStartFailed):
        starts.start(again, timeout=-1.0)
    assert not _locked(starts.folder, "server.lock")


def test_a_server_that_recovers_is_waited_for(starts: Starts) -> None:
    def recover() -> None:
        starts.alive = True

        def later() -> None:
            starts.ready = len(starts.pauses) > 1

        starts.meanwhile = later

    starts.start(Programs(starts.folder, recover))
    assert starts.pauses == [0.05, 0.05]
    starts.ready = False
    with pytest.raises(EmbeddedStartFailed):
        starts.start(Programs(starts.folder), recovery=-1.0)


def test_processes_of_an_earlier_server_are_not_joined(starts: Starts) -> None:
    lock = starts.folder.server_lock(0.0)
    assert lock is not None
    with pytest.raises(EmbeddedStartFailed) as failed:
        starts.start(Programs(starts.folder), timeout=-1.0)
    assert "Processes of an earlier server still use the data" in str(failed.value)
    os.close(lock)


def test_a_server_is_interrupted_and_waited_for(
    starts: Starts, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bool]] = []
    monkeypatch.setattr(
        postmaster, "interrupt", lambda pid, still: asked.append((pid, bool(still())))
    )
    cluster.stop(starts.folder, timeout=1.0)
    assert asked == []
    starts.alive = True

    def end() -> None:
        starts.alive = False

    starts.meanwhile = end
    cluster.stop(starts.folder, timeout=60.0)
    assert asked == [(7, True)]
    assert starts.pauses == [0.05]
    starts.alive = True
    with pytest.raises(EmbeddedStartFailed, match="The server did not stop"):
        cluster.stop(starts.folder, timeout=-1.0)


class Catalog:
    """A server with or without the installer and its database."""

    def __init__(self, roles: bool, database: bool) -> None:
        self.found = {"pg_roles": roles, "pg_database": database}
        self.ran: list[str] = []
        self.pgconn = SimpleNamespace(encrypt_password=lambda password, *_: b"hash of " + password)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, query: Any, _: Any = None) -> Any:
        text = query if isinstance(query, str) else query.as_string(None)
        for table, found in self.found.items():
            if table in text:
                return SimpleNamespace(fetchone=lambda found=found: (1,) if found else None)
        self.ran.append(text)
        return None


@pytest.mark.parametrize(
    ("roles", "database", "password", "expected"),
    [
        (False, False, None, ["create role", "alter role", "create database"]),
        (True, True, "x", []),
        (True, True, None, ["alter role"]),
        (True, False, "x", ["create database"]),
    ],
)
def test_what_is_missing_in_a_server_is_created(
    folder: Folder,
    monkeypatch: pytest.MonkeyPatch,
    *,
    roles: bool,
    database: bool,
    password: str | None,
    expected: list[str],
) -> None:
    folder.port = 5
    if password:
        folder.new_password()
    catalog = Catalog(roles, database)
    asked: list[str] = []

    def connect(dsn: str, *, autocommit: bool) -> Catalog:
        asked.append(dsn)
        return catalog

    monkeypatch.setattr(psycopg, "connect", connect)
    server._prepare(folder)  # noqa: SLF001
    assert [text.rsplit(' "', 2)[0].split(' "')[0] for text in catalog.ran] == expected
    assert asked[0].startswith("postgresql://postgres@/postgres?")
    assert folder.password is not None
    altered = [text for text in catalog.ran if text.startswith("alter")]
    assert all(f"'hash of {folder.password}'" in text for text in altered)
