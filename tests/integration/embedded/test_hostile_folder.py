"""Root looks after a folder whose owner puts links and FIFOs in the place of its files."""

import json
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

from tests.support.waiting import until
from trunkline.embedded import acquire, service, stop
from trunkline.errors import EmbeddedFolderUnsafe, EmbeddedPlatform, TrunklineError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

# Every file and directory that our own code opens, writes, replaces or removes.
FILES = (
    "start.lock",
    "users.lock",
    "server.lock",
    "keeper.lock",
    "pinned",
    "port",
    "password",
    "postgres.log",
    "postgres.log.old",
    "data/PG_VERSION",
    "data/postmaster.pid",
    "data/trunkline.conf",
)
DIRECTORIES = ("data", "run")
# With a file replaced by a link these either refuse or replace the link; they never follow it.
_COMMANDS = """
import json, sys
from trunkline.embedded import acquire, service
from trunkline.errors import TrunklineError
outcome = {}
for name, command in {
    "status": lambda: service.status(),
    "dsn": lambda: service.dsn(tcp=True),
    "start": lambda: acquire().close(),
    "stop": lambda: service.stop(force=True),
}.items():
    try:
        command()
        outcome[name] = "done"
    except TrunklineError as error:
        outcome[name] = error.code
print(json.dumps(outcome))
"""


@pytest.fixture(scope="module")
def nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


@pytest.fixture(scope="module")
def used(nobody: pwd.struct_passwd) -> Iterator[Path]:
    """A folder of another user, in which root started the server once."""
    base = Path(tempfile.mkdtemp(prefix="trunkline-"))
    base.chmod(0o711)
    folder = base / "ev"
    folder.mkdir(mode=0o700)
    # The group of the folder is one that its owner does not belong to.
    os.chown(folder, nobody.pw_uid, 0)
    try:
        acquire(folder).close()
    except EmbeddedPlatform as refusal:
        shutil.rmtree(base)
        pytest.skip(f"user nobody cannot run the programs: {refusal.message}")
    try:
        yield folder
    finally:
        stop(folder, force=True)
        # A process that just noticed the end may still be closing files there.
        until(lambda: _removed(base), f"{base} is removed")


def _removed(base: Path) -> bool:
    shutil.rmtree(base, ignore_errors=True)
    return not base.exists()


class Victim:
    """A file and a directory of root, which nothing may change."""

    def __init__(self, base: Path) -> None:
        self.file = base / "victim"
        self.file.write_text("precious")
        self.file.chmod(0o600)
        self.directory = base / "precious"
        self.directory.mkdir(mode=0o700)
        (self.directory / "inside").write_text("precious")
        self._before = self._state()

    def _state(self) -> list[object]:
        paths = (self.file, self.directory, self.directory / "inside")
        states = [(s.st_uid, s.st_gid, s.st_mode) for s in (path.lstat() for path in paths)]
        texts = [self.file.read_text(), (self.directory / "inside").read_text()]
        return [states, texts, sorted(path.name for path in self.directory.iterdir())]

    def require_unchanged(self) -> None:
        assert self._state() == self._before


@pytest.fixture
def victim(used: Path) -> Iterator[Victim]:
    base = used.parent / "root"
    base.mkdir(mode=0o755)
    yield Victim(base)
    shutil.rmtree(base)


@contextmanager
def planted(place: Path, plant: Callable[[Path], None]) -> Iterator[None]:
    """Put something in the place of a file or directory and restore it afterwards."""
    aside = place.parent.parent / f"{place.name}.aside"
    with suppress(FileNotFoundError):
        place.rename(aside)
    plant(place)
    try:
        yield
    finally:
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            aside.rename(place)


def commands(home: Path) -> dict[str, str]:
    """Run every command on the folder; none may hang."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TRUNKLINE_")}
    done = subprocess.run(
        [sys.executable, "-c", _COMMANDS],
        env=environment | {"TRUNKLINE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    outcome: dict[str, str] = json.loads(done.stdout)
    return outcome


@pytest.mark.parametrize("name", FILES)
def test_root_follows_no_symbolic_link(used: Path, victim: Victim, name: str) -> None:
    with planted(used / name, lambda place: place.symlink_to(victim.file)):
        outcome = commands(used)
        victim.require_unchanged()
    assert set(outcome.values()) <= {"done", "embedded_folder_unsafe"}, outcome


@pytest.mark.parametrize("name", FILES)
def test_root_writes_to_no_hard_link(used: Path, victim: Victim, name: str) -> None:
    with planted(used / name, lambda place: place.hardlink_to(victim.file)):
        outcome = commands(used)
        victim.require_unchanged()
    assert set(outcome.values()) <= {"done", "embedded_folder_unsafe"}, outcome


@pytest.mark.parametrize("held", [False, True], ids=["closed", "open"])
@pytest.mark.parametrize("name", FILES)
def test_a_fifo_is_not_taken_for_a_file(
    used: Path, nobody: pwd.struct_passwd, name: str, held: bool
) -> None:
    """Opening it waits for the other end; if that is open, reading waits, and writing tells."""

    def plant(path: Path) -> None:
        os.mkfifo(path, 0o600)
        os.chown(path, nobody.pw_uid, nobody.pw_gid)

    with planted(used / name, plant):
        other_end = os.open(used / name, os.O_RDWR | os.O_NONBLOCK) if held else None
        outcome = commands(used)
        if other_end is not None:
            with suppress(BlockingIOError):
                assert os.read(other_end, 1) == b""
            os.close(other_end)
    assert set(outcome.values()) <= {"done", "embedded_folder_unsafe"}, outcome
    # The other files are replaced, removed or left to the server.
    if name in {"start.lock", "users.lock", "server.lock", "postgres.log", "data/postmaster.pid"}:
        assert outcome["start"] == "embedded_folder_unsafe"


@pytest.mark.parametrize("name", DIRECTORIES)
def test_root_enters_no_linked_directory(used: Path, victim: Victim, name: str) -> None:
    with planted(used / name, lambda place: place.symlink_to(victim.directory)):
        outcome = commands(used)
        victim.require_unchanged()
    assert set(outcome.values()) <= {
        "done",
        "embedded_folder_unsafe",
        "embedded_not_running",
    }, outcome


def test_the_first_start_follows_no_link(
    home: Path, used: Path, victim: Victim, nobody: pwd.struct_passwd
) -> None:
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    (home / "data.new").symlink_to(victim.directory)
    acquire(home).close()
    victim.require_unchanged()
    assert (home / "data").stat().st_uid == nobody.pw_uid
    assert not (home / "data.new").exists()


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    """Swap in a loop beside the test, as the owner of the folder would."""
    over = threading.Event()
    rounds = threading.Semaphore(0)

    def run() -> None:
        while not over.is_set():
            swap()
            rounds.release()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        rounds.acquire()
        yield
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("name", ["start.lock", "users.lock", "password", "data/postmaster.pid"])
def test_a_race_for_a_file_is_not_won(
    used: Path, victim: Victim, nobody: pwd.struct_passwd, name: str
) -> None:
    place = used / name
    spare = used / "spare"

    def swap() -> None:
        spare.touch(mode=0o600)
        os.chown(spare, nobody.pw_uid, nobody.pw_gid)
        spare.rename(place)
        for link in (spare.symlink_to, spare.hardlink_to):
            link(victim.file)
            spare.rename(place)

    with planted(place, lambda _: None), swapping(swap):
        for _ in range(100):
            for command in (service.status, service.stop, service.dsn):
                with suppress(TrunklineError):
                    command(used)
            with suppress(TrunklineError):
                service.dsn(used, tcp=True)
    victim.require_unchanged()


def test_a_race_for_the_folder_or_its_data_is_not_won(used: Path, victim: Victim) -> None:
    for place in (used, used / "data"):
        away = place.with_name("away")

        def swap(place: Path = place, away: Path = away) -> None:
            place.rename(away)
            place.symlink_to(victim.directory)
            place.unlink()
            away.rename(place)

        owner = used.parent.stat()
        # So that the owner of the folder may rename it.
        os.chown(used.parent, used.stat().st_uid, -1)
        try:
            with swapping(swap):
                for _ in range(100):
                    for command in (service.status, service.stop):
                        with suppress(TrunklineError, FileNotFoundError):
                            command(used)
        finally:
            os.chown(used.parent, owner.st_uid, -1)
    victim.require_unchanged()


def test_the_server_of_another_user_learns_nothing_of_root(
    used: Path, nobody: pwd.struct_passwd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_ROOT", "precious")
    with acquire(used) as server:
        process = Path(f"/proc/{server.pid}")
        assert b"precious" not in (process / "environ").read_bytes()
        status = dict(
            line.split(":\t", 1) for line in (process / "status").read_text().splitlines() if line
        )
        assert status["Uid"].split() == [str(nobody.pw_uid)] * 4
        # Not the group of the folder, in which its owner is not a member.
        assert status["Gid"].split() == [str(nobody.pw_gid)] * 4
        assert status["Groups"].split() == []


def test_a_process_of_root_is_not_taken_for_the_server(
    used: Path, nobody: pwd.struct_passwd
) -> None:
    data = used / "data"
    with subprocess.Popen(
        ["/bin/sh", "-c", "read line", "sh", str(data)], stdin=subprocess.PIPE
    ) as bystander:
        try:

            def write(place: Path) -> None:
                place.write_text(f"{bystander.pid}\n{data}\n")
                place.chmod(0o600)
                os.chown(place, nobody.pw_uid, nobody.pw_gid)

            with planted(data / "postmaster.pid", write):
                assert not stop(used, force=True)
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_the_socket_of_another_server_is_not_taken_for_its_own(used: Path, home: Path) -> None:
    with acquire(home) as own:
        socket = own.folder.socket_directory / f".s.PGSQL.{own.folder.port}"
        string = service.dsn(used)
        place = used / "run" / f".s.PGSQL.{service.status(used).port}"
        with (
            planted(place, lambda place: place.symlink_to(socket)),
            pytest.raises(psycopg.OperationalError, match="requirepeer"),
        ):
            psycopg.connect(string)


def test_a_folder_below_a_directory_of_another_user_is_not_roots(
    home: Path, nobody: pwd.struct_passwd
) -> None:
    home.mkdir(mode=0o755)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    with pytest.raises(EmbeddedFolderUnsafe, match=f"user id {nobody.pw_uid}"):
        acquire(home / "server")
    assert not list(home.iterdir())
    (home / "server").mkdir(mode=0o700)
    with pytest.raises(EmbeddedFolderUnsafe, match="could replace"):
        acquire(home / "server")
    assert not list((home / "server").iterdir())
    (home / "server").rmdir()


def test_a_link_of_another_user_does_not_name_roots_folder(
    home: Path, nobody: pwd.struct_passwd
) -> None:
    target = home.parent / "precious"
    target.mkdir(mode=0o700)
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    (home / "link").symlink_to(target)
    for command in (acquire, service.stop, service.status):
        with pytest.raises(EmbeddedFolderUnsafe):
            command(home / "link")
    assert not list(target.iterdir())
    shutil.rmtree(home)


def test_a_parent_that_others_can_write_to_is_refused(home: Path) -> None:
    home.parent.chmod(0o777)
    with pytest.raises(EmbeddedFolderUnsafe) as refusal:
        acquire(home)
    assert f"chmod go-w {home.parent}" in refusal.value.hint
    assert not home.exists()
    home.parent.chmod(0o711)


def test_a_password_that_another_user_wrote_is_refused(
    home: Path, nobody: pwd.struct_passwd
) -> None:
    home.mkdir(mode=0o700)
    (home / "password").write_text("known to nobody")
    (home / "password").chmod(0o600)
    os.chown(home / "password", nobody.pw_uid, nobody.pw_gid)
    (home / "port").write_text("5432")
    with pytest.raises(EmbeddedFolderUnsafe) as refusal:
        service.dsn(home, tcp=True)
    assert "password" in refusal.value.hint


def test_the_files_of_another_user_stay_that_users(used: Path, nobody: pwd.struct_passwd) -> None:
    for path in used.rglob("*"):
        assert path.lstat().st_uid == nobody.pw_uid, path
        assert not stat.S_IMODE(path.lstat().st_mode) & 0o077 or "data" in path.parts, path
