"""The folder of one embedded server: paths, locks, secrets and the pin.

Three locks, all ``flock``, so the kernel drops them when their holder dies:

- ``start.lock``, exclusive: held while the server is initialised, started or stopped.
- ``users.lock``, shared: held by every user for as long as it uses the server. Whoever gets it
  exclusively, while holding ``start.lock``, is alone.
- ``server.lock``, exclusive: inherited by every process of the server, so that it is free exactly
  when the last one is gone. PostgreSQL's own check knows process numbers, which mean nothing in
  another container that has the same folder mounted.
"""

import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trunkline.errors import EmbeddedFolderUnsafe

__all__ = ["HOME_VARIABLE", "Folder", "default_home"]

HOME_VARIABLE = "TRUNKLINE_HOME"

# 104 bytes on macOS, 108 on Linux, the final zero included; ports have up to five digits.
_SOCKET_PATH_LIMIT = 103
_LONGEST_SOCKET_NAME = "/.s.PGSQL.65535.lock"


def default_home() -> Path:
    """Return TRUNKLINE_HOME, or the per-user data folder of this platform."""
    given = os.environ.get(HOME_VARIABLE)
    if given:
        return Path(given)
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "trunkline"


class Folder:
    """Paths and small files of one server. Only the data folder itself is PostgreSQL's."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = (home or default_home()).expanduser().resolve()
        self.data = self.home / "data"
        self.log = self.home / "postgres.log"
        self._password = self.home / "password"
        self._pin = self.home / "pinned"
        self._port = self.home / "port"

    def create(self) -> None:
        """Make the folder, private; one that belongs to another user is refused."""
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = self.home.stat().st_uid
        # Root may look after another user's server; nobody else may.
        if os.geteuid() not in (0, owner):
            raise EmbeddedFolderUnsafe(f"{self.home} belongs to user id {owner}")

    @contextmanager
    def start_lock(self) -> Iterator[None]:
        """Wait for the exclusive right to initialise, start or stop the server."""
        descriptor = self._open("start.lock")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def server_lock(self, timeout: float) -> int | None:
        """Take the lock that the server is to inherit; nothing if an old one does not let go."""
        give_up = time.monotonic() + timeout
        descriptor = self._open("server.lock")
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
        """Become a user; the result keeps the lock until it is closed or the process dies."""
        descriptor = self._open("users.lock")
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor

    def leave(self, descriptor: int) -> bool:
        """Stop being a user and say whether nobody is left. Call it under the start lock."""
        try:
            # A failed conversion may lose the shared lock: right, since we are leaving.
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        else:
            return True
        finally:
            os.close(descriptor)

    def has_users(self) -> bool:
        """Say whether anybody uses the server. Exact only under the start lock."""
        descriptor = self._open("users.lock")
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
        """Whether the server stays up without users. A pin does not outlive its boot."""
        try:
            return self._pin.read_text(encoding="ascii") == _boot()
        except FileNotFoundError:
            return False

    @pinned.setter
    def pinned(self, value: bool) -> None:
        if value:
            self._write(self._pin, _boot())
        else:
            self._pin.unlink(missing_ok=True)

    @property
    def port(self) -> int | None:
        """The loopback port of the last start."""
        try:
            return int(self._port.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    @port.setter
    def port(self, value: int) -> None:
        self._write(self._port, str(value))

    @property
    def password(self) -> str | None:
        """The installer's password for TCP; the socket needs none."""
        try:
            return self._password.read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def new_password(self) -> str:
        password = secrets.token_urlsafe(24)
        self._write(self._password, password)
        return password

    @property
    def socket_directory(self) -> Path:
        """Where the Unix socket is: in the folder, or elsewhere when that path is too long."""
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

    def create_socket_directory(self, uid: int, gid: int) -> None:
        """Make the directory that keeps other users away from the socket, which asks nothing."""
        directory = self.socket_directory
        directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
        # In a world-writable parent somebody else may have made it first, or put a link there.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (os.geteuid(), uid):
            raise EmbeddedFolderUnsafe(f"{directory} is not a directory of user id {uid}")
        if found.st_uid != uid:
            os.chown(directory, uid, gid)
        directory.chmod(0o700)

    def _open(self, name: str) -> int:
        path = self.home / name
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._give_to_owner(path)
        return descriptor

    def _write(self, path: Path, text: str) -> None:
        """Replace a small private file in one step, so that no reader sees half of it."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
        self._give_to_owner(temporary)
        temporary.replace(path)

    def _give_to_owner(self, path: Path) -> None:
        """When root looks after another user's folder, that user must still be able to open it."""
        if os.geteuid() == 0:
            owner = self.home.stat()
            if owner.st_uid != 0:
                os.chown(path, owner.st_uid, owner.st_gid)


def _boot() -> str:
    """Identify the running kernel, so that a pin from before a crash of the machine is void."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"
