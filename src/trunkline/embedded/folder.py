"""The folder of one embedded server: paths, locks, secrets and the pin.

Three locks, all ``flock``, so the kernel drops them when their holder dies:

- ``start.lock``, exclusive: held while the server is initialised, started or stopped.
- ``users.lock``, shared: held by every user for as long as it uses the server. A process that gets
  it exclusively, while it holds ``start.lock``, knows that there are no other users.
- ``server.lock``, exclusive: inherited by every process of the server, so that it is free exactly
  when the last one has ended. PostgreSQL's own check uses process ids, which mean nothing in
  another container that mounts the same folder.
"""

import fcntl
import hashlib
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from trunkline.embedded import postmaster
from trunkline.embedded.directory import (
    Directory,
    open_directory,
    open_home,
    primary_group,
    resolved,
)
from trunkline.errors import EmbeddedFolderUnsafe

__all__ = ["HOME_VARIABLE", "Folder", "default_home"]

HOME_VARIABLE = "TRUNKLINE_HOME"

# 104 bytes on macOS, 108 on Linux, including the final zero. Ports have up to five digits.
_SOCKET_PATH_LIMIT = 103
_LONGEST_SOCKET_NAME = "/.s.PGSQL.65535.lock"

# Characters of the log that an error shows.
_TAIL = 2000


def default_home() -> Path:
    """Return TRUNKLINE_HOME, or the per-user data folder of this platform."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "trunkline"


class Folder:
    """Paths and small files of one server. Only the data folder itself belongs to PostgreSQL.

    The paths are for messages and for programs that run as the owner of the data. This class opens
    files through ``Directory``, because root may work in a folder of another user.
    """

    def __init__(self, home: Path | None = None) -> None:
        given = (home or default_home()).expanduser()
        self._given = given.absolute()
        self.home = resolved(given)
        self.data = self.home / "data"
        self.log = self.home / "postgres.log"

    def create(self) -> None:
        """Create the private folder; refuse one that other users own or can write to."""
        with open_home(self._given, self.home, create=True):
            pass

    @contextmanager
    def open(self) -> Iterator[Directory]:
        """Open the folder, after checking that only its owner controls it."""
        with open_home(self._given, self.home) as directory:
            yield directory

    @contextmanager
    def open_data(self) -> Iterator[Directory | None]:
        """Open the data folder; None if it does not exist."""
        with ExitStack() as stack:
            try:
                home = stack.enter_context(self.open())
                data = stack.enter_context(home.enter("data"))
            except FileNotFoundError:
                data = None
            yield data

    @contextmanager
    def start_lock(self) -> Iterator[None]:
        """Wait for the lock under which the server is initialised, started and stopped."""
        descriptor = self._open_lock("start.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def server_lock(self, timeout: float) -> int | None:
        """Take the lock that the server inherits; None if an old server holds it for too long."""
        give_up = time.monotonic() + timeout
        descriptor = self._open_lock("server.lock")
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > give_up:
                    os.close(descriptor)
                    return None
                time.sleep(0.05)
            else:
                return descriptor

    def join(self) -> int:
        """Become a user. The returned descriptor holds the lock until it is closed."""
        descriptor = self._open_lock("users.lock")
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def leave(self, descriptor: int) -> bool:
        """Stop being a user; return whether no user is left. Call it under the start lock."""
        try:
            # A failed conversion may lose the shared lock, which is fine because we leave.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def has_users(self) -> bool:
        """Return whether the server has users. Exact only under the start lock."""
        descriptor = self._open_lock("users.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)

    @property
    def pinned(self) -> bool:
        """Whether the server stays up without users. A reboot removes the pin."""
        return self._read("pinned") == _boot()

    @pinned.setter
    def pinned(self, value: bool) -> None:
        with self.open() as home:
            if value:
                home.replace("pinned", _boot())
            else:
                home.remove("pinned")

    @property
    def port(self) -> int | None:
        """The loopback port of the last start."""
        try:
            return int(self._read("port") or "")
        except ValueError:
            return None

    @port.setter
    def port(self, value: int) -> None:
        with self.open() as home:
            home.replace("port", str(value))

    @property
    def password(self) -> str | None:
        """The installer's password for TCP; the socket needs none."""
        return (self._read("password", private=True) or "").strip() or None

    def new_password(self) -> str:
        password = secrets.token_urlsafe(24)
        with self.open() as home:
            home.replace("password", password)
        return password

    @property
    def has_data(self) -> bool:
        """Whether the data folder exists."""
        with self.open_data() as data:
            return data is not None

    @property
    def data_version(self) -> str | None:
        """The major version that the data was created with."""
        with self.open_data() as data:
            version = data.read("PG_VERSION") if data else None
        return version.strip() if version else None

    @property
    def account(self) -> int:
        """The user id that the server runs as: the owner of the data, or else of the folder."""
        with self.open_data() as data:
            if data:
                return data.owner
        with self.open() as home:
            return home.owner

    @property
    def postmaster(self) -> int | None:
        """The process id of the server that runs on the data, or None.

        PostgreSQL leaves ``postmaster.pid`` behind when it is killed or the machine crashes. Its
        number may then belong to another program, and the folder's owner could forge it. Only a
        process of that owner that runs on this data counts.
        """
        with self.open_data() as data:
            if data is None:
                return None
            pid = _recorded(data)
            if pid is None or not postmaster.runs(pid, self.data, data.owner):
                return None
            return pid

    def drop_stale_pid(self) -> None:
        """Remove ``postmaster.pid`` if its number now belongs to another program.

        PostgreSQL would mistake any process of the same account for a server on the data and refuse
        to start. Call it with the server lock, which proves that no server of ours is left.
        """
        with self.open_data() as data:
            pid = _recorded(data) if data else None
            if data and pid is not None and postmaster.is_other_program(pid):
                data.remove("postmaster.pid")

    def move_data_aside(self) -> Path:
        """Rename the data folder, with the time in its new name; return the new path.

        The owner of the folder could do the same, so root may do it in another user's folder.
        """
        name = time.strftime("data-%Y%m%d-%H%M%S", time.gmtime())
        with self.open() as home:
            # Fails if that folder exists: a folder with files is never replaced.
            home.rename("data", name)
        return self.home / name

    def open_log(self) -> int:
        """Open the server's log for a program that appends to it."""
        with self.open() as home:
            return home.open("postgres.log", os.O_WRONLY | os.O_APPEND, create=True)

    def log_size(self) -> int:
        """Return the length of the log."""
        try:
            with self.open() as home:
                descriptor = home.open("postgres.log", os.O_RDONLY)
        except FileNotFoundError:
            return 0
        try:
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)

    def log_tail(self, offset: int) -> str:
        """Return the log since the offset, at most its last 2,000 characters."""
        try:
            with self.open() as home:
                descriptor = home.open("postgres.log", os.O_RDONLY)
        except FileNotFoundError:
            return ""
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            # A character has at most four bytes.
            file.seek(max(offset, size - 4 * _TAIL))
            return file.read().decode("utf-8", "replace")[-_TAIL:]

    def rotate_log(self, limit: int) -> None:
        """Rotate the log if it is longer than the limit."""
        if self.log_size() > limit:
            with self.open() as home:
                home.rename("postgres.log", "postgres.log.old")

    @property
    def socket_directory(self) -> Path:
        """The directory of the Unix socket: in the folder, or elsewhere if its path is too long."""
        inside = self.home / "run"
        if len(os.fsencode(inside)) + len(_LONGEST_SOCKET_NAME) <= _SOCKET_PATH_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        name = f"trunkline-{self.home.stat().st_uid}-{digest}"
        for base in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - made private and checked below
            outside = Path(base) / name
            if len(os.fsencode(outside)) + len(_LONGEST_SOCKET_NAME) <= _SOCKET_PATH_LIMIT:
                return outside
        raise EmbeddedFolderUnsafe(f"No path short enough for a Unix socket near {self.home}")

    def secure_socket_directory(self, uid: int) -> None:
        """Create the directory that hides the socket, which needs no password, from other users.

        The account ``uid`` runs the server. Root creates nothing in a directory of that account,
        which could replace the new entry at once. The account has to create it beforehand.
        """
        path = self.socket_directory
        caller = os.geteuid()
        with open_directory(path.parent) as parent:
            if caller != 0 or parent.owner == 0:
                with suppress(FileExistsError):
                    os.mkdir(path.name, 0o700, dir_fd=parent.descriptor)
            with parent.enter(path.name) as directory:
                if parent.owner == 0 and directory.owner == caller != uid:
                    os.fchown(directory.descriptor, uid, primary_group(uid))
                # In a world-writable parent another user may have created it first.
                elif directory.owner != uid:
                    raise EmbeddedFolderUnsafe(f"{path} is not a directory of user id {uid}")
                os.fchmod(directory.descriptor, 0o700)

    def _open_lock(self, name: str) -> int:
        with self.open() as home:
            return home.open(name, os.O_RDWR, create=True)

    def _read(self, name: str, *, private: bool = False) -> str | None:
        try:
            with self.open() as home:
                return home.read(name, private=private)
        except FileNotFoundError:
            return None


def _recorded(data: Directory) -> int | None:
    """Return the process id in ``postmaster.pid``, without checking that process."""
    first = (data.read("postmaster.pid") or "").split("\n", 1)[0].strip()
    return int(first) if first.isascii() and first.isdigit() else None


def _boot() -> str:
    """Return the id of this boot, so that a pin from before a crash of the machine is ignored."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
