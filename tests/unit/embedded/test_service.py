"""Starting, stopping and looking after a server, with programs that are made up."""

import atexit
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from trunkline.embedded import binaries, cluster, keeper, launcher, server, service
from trunkline.embedded.binaries import Binaries
from trunkline.embedded.folder import Folder
from trunkline.embedded.launcher import Launcher
from trunkline.embedded.server import EmbeddedServer, connection_string
from trunkline.errors import EmbeddedInUse, EmbeddedNotRunning, EmbeddedStartFailed


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


class World:
    """A server that runs or does not, and what was done to it."""

    def __init__(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.running = True
        self.accepts = True
        self.done: list[str] = []
        monkeypatch.setattr(Folder, "postmaster", property(lambda _: 7 if self.running else None))
        monkeypatch.setattr(cluster, "accepts", lambda _: self.accepts)
        monkeypatch.setattr(cluster, "stop", self._stop)

    def _stop(self, folder: Folder, *, timeout: float) -> None:
        assert _locked(folder)
        assert timeout == 60.0
        self.done.append("stop")
        self.running = False


@pytest.fixture
def world(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(folder, monkeypatch)


def test_a_stop_removes_the_pin_and_returns_whether_the_server_ran(world: World) -> None:
    world.folder.pinned = True
    assert service.stop(world.folder.home) is True
    assert world.done == ["stop"]
    assert not world.folder.pinned
    assert service.stop(world.folder.home) is False
    assert service.stop(world.folder.home / "missing") is False
    assert not (world.folder.home / "missing").exists()


def test_a_server_in_use_is_stopped_only_by_force(world: World) -> None:
    user = world.folder.join()
    with pytest.raises(EmbeddedInUse, match=r"^Other processes use the embedded server$"):
        service.stop(world.folder.home)
    assert world.done == []
    assert service.stop(world.folder.home, force=True) is True
    # Down, it is not in use.
    assert service.stop(world.folder.home) is False
    world.folder.leave(user)


def test_a_reset_stops_and_moves_the_data_aside(world: World) -> None:
    assert service.reset(world.folder.home) is None
    assert service.reset(world.folder.home / "missing") is None
    assert world.done == []
    world.folder.data.mkdir()
    aside = service.reset(world.folder.home)
    assert aside is not None
    assert aside.exists()
    assert world.done == ["stop"]
    assert not world.folder.has_data
    assert not _locked(world.folder, "server.lock")


@pytest.mark.parametrize(
    ("pinned", "used", "stopped"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_only_an_unused_server_is_stopped_unasked(
    world: World, pinned: bool, used: bool, stopped: bool
) -> None:
    world.folder.pinned = pinned
    user = world.folder.join()
    if not used:
        world.folder.leave(user)
    service.stop_if_unused(world.folder.home)
    assert (world.done == ["stop"]) is stopped


def test_the_status_is_that_of_a_server_that_answers(world: World) -> None:
    world.folder.pinned = True
    world.folder.port = 5
    world.folder.data.mkdir()
    (world.folder.data / "PG_VERSION").write_text("18\n")
    home, log = world.folder.home, world.folder.log
    assert service.status(home) == service.Status(home, True, 7, 5, "18", True, False, log)
    user = world.folder.join()
    assert service.status(home).in_use
    world.accepts = False
    assert service.status(home) == service.Status(home, False, None, 5, "18", False, False, log)
    world.folder.leave(user)


def test_a_connection_string_needs_a_server_that_was_started(folder: Folder) -> None:
    with pytest.raises(EmbeddedNotRunning) as refused:
        service.dsn(folder.home)
    assert str(refused.value) == f"There is no server in {folder.home} yet"
    folder.port = 5
    (folder.home / "password").touch(mode=0o600)
    (folder.home / "password").write_text("a/b")
    assert service.dsn(folder.home, tcp=True) == (
        "postgresql://trunkline_installer:a%2Fb@127.0.0.1:5/trunkline"
    )
    where = str(folder.socket_directory).replace("/", "%2F")
    assert service.dsn(folder.home) == (
        f"postgresql://trunkline_installer@/trunkline?host={where}&port=5"
    )
    assert connection_string(folder, user="postgres").startswith("postgresql://postgres@/")


def test_psql_is_searched_next_to_the_server(
    folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "find", lambda *_: Binaries(tmp_path, 18))
    assert service.psql_program(folder.home) is None
    (tmp_path / "psql").touch()
    assert service.psql_program(folder.home) == tmp_path / "psql"


class Users:
    """What users of a server do when they come and go."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.world = world
        world.running = False
        ours = Launcher(os.geteuid(), os.getegid())
        monkeypatch.setattr(binaries, "find", lambda *_: Binaries(Path("/b"), 18))
        monkeypatch.setattr(launcher, "choose", lambda *_: ours)
        monkeypatch.setattr(cluster, "initialise", self._initialise)
        monkeypatch.setattr(cluster, "start", self._start)
        monkeypatch.setattr(server, "_prepare", lambda _: world.done.append("prepare"))
        monkeypatch.setattr(keeper, "watch", lambda _: world.done.append("watch"))
        monkeypatch.setattr(atexit, "register", lambda _: world.done.append("register"))
        monkeypatch.setattr(atexit, "unregister", lambda _: None)
        self.error: Exception | None = None

    def _initialise(self, folder: Folder, *_: Any) -> None:
        self.world.done.append("initialise")
        folder.data.mkdir()

    def _start(self, folder: Folder, *_: Any, **limits: float) -> None:
        assert _locked(folder)
        assert folder.has_users()
        assert limits == {"timeout": 60.0, "recovery_timeout": 600.0}
        self.world.done.append("start")
        if self.error is not None:
            raise self.error
        self.world.running = True

    def join(self) -> EmbeddedServer:
        return server.acquire(self.world.folder.home)

    def taken(self) -> list[str]:
        done, self.world.done[:] = list(self.world.done), []
        return done


@pytest.fixture
def users(world: World, monkeypatch: pytest.MonkeyPatch) -> Users:
    return Users(world, monkeypatch)


def test_the_first_user_starts_the_server_and_the_last_one_stops_it(users: Users) -> None:
    folder = users.world.folder
    first = users.join()
    assert users.taken() == ["initialise", "start", "prepare", "watch", "register"]
    assert first.pid == 7
    assert first.bindir == Path("/b")
    folder.port = 5
    assert first.dsn == connection_string(folder)
    assert first.superuser_dsn == connection_string(folder, user="postgres")
    second = users.join()
    assert users.taken() == ["watch", "register"]
    first.close()
    first.close()
    assert users.taken() == []
    with second:
        users.world.running = False
        second.ensure_running()
        assert users.taken() == ["start", "prepare"]
        second.ensure_running()
        assert users.taken() == []
    assert users.taken() == ["stop"]
    assert not folder.has_users()


def test_a_server_that_does_not_answer_is_started(users: Users) -> None:
    users.world.running = True
    users.world.accepts = False
    users.world.folder.data.mkdir()
    with users.join():
        assert users.taken() == ["start", "prepare", "watch", "register"]


def test_a_pinned_server_outlives_its_users_and_has_no_keeper(users: Users) -> None:
    users.world.folder.pinned = True
    users.join().close()
    assert users.taken() == ["initialise", "start", "prepare", "register"]
    status = service.pin(users.world.folder.home)
    assert status.pinned
    assert users.taken() == ["register"]


def test_a_start_that_fails_leaves_no_user(users: Users) -> None:
    users.error = EmbeddedStartFailed("no", log=Path("/l"), tail="")
    with pytest.raises(EmbeddedStartFailed):
        users.join()
    assert not users.world.folder.has_users()


def test_a_fork_does_not_leave_for_its_parent(
    users: Users, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = users.join()
    users.taken()
    monkeypatch.setattr(os, "getpid", lambda: 1)
    used.close()
    assert users.taken() == []
    assert users.world.folder.has_users()
    monkeypatch.undo()
