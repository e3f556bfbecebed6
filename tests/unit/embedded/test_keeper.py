"""The keeper stops a server whose users are gone."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trunkline.embedded import keeper
from trunkline.embedded.directory import Directory
from trunkline.embedded.folder import Folder

_DATA = Path("/nowhere/data")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "home")
    made.create()
    return made


class Watched:
    """The folder of a keeper, as an open directory."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.descriptor = os.open(folder.home, os.O_RDONLY | os.O_DIRECTORY)
        folder.data.mkdir(mode=0o700)
        self.pid = folder.data / "postmaster.pid"
        self.pid.touch()


@pytest.fixture
def watched(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    made = Watched(folder)
    with folder.start_lock():
        os.close(folder.join())
    (folder.home / "keeper.lock").touch(mode=0o600)
    yield made
    os.close(made.descriptor)


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_server_is_unused_if_it_runs_and_nobody_has_the_lock(watched: Watched) -> None:
    before = _descriptors()
    assert keeper._unused(watched.descriptor) is True  # noqa: SLF001
    user = watched.folder.join()
    assert keeper._unused(watched.descriptor) is False  # noqa: SLF001
    watched.folder.leave(user)
    watched.pid.unlink()
    assert keeper._unused(watched.descriptor) is False  # noqa: SLF001
    assert _descriptors() == before


def test_a_keeper_stops_an_unused_server_and_ends_with_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    asked: list[Any] = []
    user = watched.folder.join()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            watched.folder.leave(user)

    def run(command: list[str], *, check: bool) -> None:
        asked.append(command)
        watched.pid.unlink()

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(subprocess, "run", run)
    home = str(watched.folder.home)
    keeper._keep(watched.descriptor, home, "python")  # noqa: SLF001
    ((python, *flags, _code, path),) = asked
    assert (python, flags, path) == ("python", ["-I", "-c"], home)
    assert waits == [2.0] * 4


@pytest.mark.parametrize("why", ["pinned", "another keeper"])
def test_a_keeper_is_not_needed_if(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("stopped"))
    if why == "pinned":
        watched.folder.pinned = True
        keeper._keep(watched.descriptor, "", "")  # noqa: SLF001
        assert waits == [2.0]
        return
    other = os.open(watched.folder.home / "keeper.lock", os.O_RDWR)
    fcntl.flock(other, fcntl.LOCK_EX)
    before = _descriptors()
    keeper._keep(watched.descriptor, "", "")  # noqa: SLF001
    assert waits == []
    assert _descriptors() == before
    os.close(other)


def test_a_keeper_opens_only_files_of_the_folder(watched: Watched) -> None:
    place = watched.folder.home / "odd"
    with pytest.raises(FileNotFoundError):
        keeper._take(watched.descriptor, "odd", wait=False)  # noqa: SLF001
    os.mkfifo(place)
    with pytest.raises(FileNotFoundError):
        keeper._take(watched.descriptor, "odd", wait=False)  # noqa: SLF001
    place.unlink()
    place.symlink_to(watched.folder.home / "start.lock")
    with pytest.raises(OSError, match="symbolic"):
        keeper._take(watched.descriptor, "odd", wait=False)  # noqa: SLF001
    if os.geteuid() == 0:
        place.unlink()
        place.touch()
        os.chown(place, 65534, 65534)
        with pytest.raises(FileNotFoundError):
            keeper._take(watched.descriptor, "odd", wait=False)  # noqa: SLF001


def test_a_keeper_is_started_once(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []

    class Started:
        returncode = None

    def spawn(command: list[str], **options: Any) -> Started:
        started.append((command, options))
        return Started()

    monkeypatch.setattr(subprocess, "Popen", spawn)
    with Directory(os.dup(watched.descriptor), watched.folder.home) as home:
        before = _descriptors()
        keeper.watch(home)
        ((command, options),) = started
        assert command[1:3] == ["-I", "-S"]
        assert command[4:] == [str(home.descriptor), str(watched.folder.home), sys.executable]
        assert options["pass_fds"] == [home.descriptor]
        assert options["start_new_session"] is True
        other = os.open(watched.folder.home / "keeper.lock", os.O_RDWR)
        fcntl.flock(other, fcntl.LOCK_EX)
        keeper.watch(home)
        assert len(started) == 1
        os.close(other)
        assert _descriptors() == before
