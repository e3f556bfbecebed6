"""Directories opened so that their owner cannot redirect us to other files.

Root may manage another user's server. That user can replace any file of the folder with a symbolic
link, a hard link or a FIFO at any moment, so nothing here acts on a path. Directories are opened
component by component, and files relative to a directory's descriptor without following links.
Every check runs on the open file. A file is accepted only if it belongs to the owner of its
directory: writing to it does nothing that this owner could not do alone.
"""

import errno
import os
import pwd
import secrets
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from trunkline.errors import EmbeddedFolderUnsafe, EmbeddedPlatform

__all__ = ["Directory", "open_directory", "open_home", "primary_group", "resolved"]

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Enough to pass through a directory that even root may not list, for instance on NFS.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a FIFO must not wait for its other end.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_ANY = stat.S_IRWXG | stat.S_IRWXO
_MOST_LINKS = 40
# Another root process may have created the file and not yet given it to its owner.
_SETTLE = 1.0


class Directory:
    """An open directory. The names passed to its methods are plain names, never paths."""

    def __init__(self, descriptor: int, path: Path) -> None:
        self.descriptor = descriptor
        self.path = path
        status = os.fstat(descriptor)
        self.owner = status.st_uid
        self.mode = stat.S_IMODE(status.st_mode)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)

    def require_private(self) -> None:
        """Refuse a directory in which another user could create or replace files."""
        if self.mode & _OTHERS_WRITE:
            raise EmbeddedFolderUnsafe(
                f"{self.path} is writable by other users (mode {self.mode:04o})",
                hint=f"Make it private: chmod go-w {shlex.quote(str(self.path))}",
            )

    def open(self, name: str, flags: int, *, create: bool = False, private: bool = False) -> int:
        """Open a regular file of the directory's owner; with ``create`` it need not exist.

        With ``private`` a file that others can read is refused too.
        """
        give_up = time.monotonic() + _SETTLE
        while True:
            try:
                descriptor = os.open(name, flags | _FILE, dir_fd=self.descriptor)
            except FileNotFoundError:
                if not create:
                    raise
                try:
                    return self._create(name, flags)
                except FileExistsError:
                    continue
            except OSError as error:
                self._explain(name, error)
                raise
            problem = self._problem(os.fstat(descriptor), private=private)
            if problem is None:
                os.set_blocking(descriptor, True)
                return descriptor
            foreign = os.fstat(descriptor).st_uid == os.geteuid() != self.owner
            os.close(descriptor)
            if not foreign or time.monotonic() > give_up:
                raise self._refusal(name, problem)
            time.sleep(0.01)

    def read(self, name: str, *, private: bool = False) -> str | None:
        """Return the text of a small file, or None if it does not exist."""
        try:
            descriptor = self.open(name, os.O_RDONLY, private=private)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            return file.read()

    def replace(self, name: str, text: str) -> None:
        """Replace a small private file atomically, so that no reader sees a part of it."""
        temporary = f"{name}.{secrets.token_hex(8)}.new"
        descriptor = self._create(temporary, os.O_WRONLY)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
            self.rename(temporary, name)
        except BaseException:
            self.remove(temporary)
            raise

    def append(self, name: str, text: str) -> None:
        """Add to the end of an existing file."""
        descriptor = self.open(name, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(descriptor, "a", encoding="utf-8") as file:
            file.write(text)

    def rename(self, old: str, new: str) -> None:
        """Rename an entry. An existing file is replaced, and a link is not followed."""
        os.replace(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a file or link if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def exists(self, name: str) -> bool:
        """Return whether there is an entry of this name, of any kind."""
        try:
            os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def enter(self, name: str) -> "Directory":
        """Open a directory in this one. Below a user's folder it must belong to that user."""
        path = self.path / name
        try:
            found = Directory(os.open(name, _DIRECTORY, dir_fd=self.descriptor), path)
        except NotADirectoryError as error:
            raise EmbeddedFolderUnsafe(
                f"{path} is not a directory, or it is a symbolic link",
                hint=f"Remove it if you do not need it: rm {shlex.quote(str(path))}",
            ) from error
        # Only root can create entries in root's folder, so root chose the other owner.
        if self.owner not in (0, found.owner):
            os.close(found.descriptor)
            raise EmbeddedFolderUnsafe(
                f"{path} belongs to user id {found.owner}, {self.path} to user id {self.owner}"
            )
        return found

    def _create(self, name: str, flags: int) -> int:
        flags |= _FILE | os.O_CREAT | os.O_EXCL
        descriptor = os.open(name, flags, 0o600, dir_fd=self.descriptor)
        if self.owner != os.geteuid():
            # The descriptor is our new file, even if its name now refers to another one.
            os.fchown(descriptor, self.owner, primary_group(self.owner))
        return descriptor

    def _problem(self, status: os.stat_result, *, private: bool) -> str | None:
        if stat.S_ISLNK(status.st_mode):
            return "is a symbolic link"
        if not stat.S_ISREG(status.st_mode):
            return "is not a regular file"
        if status.st_uid != self.owner:
            return f"belongs to user id {status.st_uid}, its directory to user id {self.owner}"
        if self.owner != os.geteuid() and status.st_nlink > 1:
            return "has other names (hard links)"
        forbidden = _OTHERS_ANY if private else _OTHERS_WRITE
        if status.st_mode & forbidden:
            return f"is open to other users (mode {stat.S_IMODE(status.st_mode):04o})"
        return None

    def _explain(self, name: str, error: OSError) -> None:
        """Raise a refusal that describes what exists in place of a file that cannot be opened."""
        try:
            status = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except OSError:
            return
        problem = self._problem(status, private=False)
        if problem is not None:
            raise self._refusal(name, problem) from error
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EMLINK):
            raise self._refusal(name, "was replaced while it was opened") from error

    def _refusal(self, name: str, problem: str) -> EmbeddedFolderUnsafe:
        path = self.path / name
        return EmbeddedFolderUnsafe(
            f"{path} {problem}",
            hint=f"Find out which user created it, then run: rm {shlex.quote(str(path))}",
        )


@contextmanager
def open_home(given: Path, home: Path, *, create: bool = False) -> Iterator[Directory]:
    """Open the folder of a server: ``given`` is its path, ``home`` that path with links resolved.

    Raise FileNotFoundError if it does not exist and should not be created.
    """
    if create and os.geteuid() != 0:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open_directory(given, home, create=create) as directory:
        # Only root may manage another user's server.
        if os.geteuid() not in (0, directory.owner):
            raise EmbeddedFolderUnsafe(f"{home} belongs to user id {directory.owner}")
        directory.require_private()
        yield directory


@contextmanager
def open_directory(
    given: Path, expected: Path | None = None, *, create: bool = False
) -> Iterator[Directory]:
    """Open a directory by its absolute path.

    Root walks down the path and accepts it only if no user other than root and the owner of the
    directory controls where it leads. ``expected`` is the same path with links resolved.
    """
    place = expected or resolved(given)
    if os.geteuid() == 0:
        with _explained(place):
            descriptor = _descend(given, place, create=create)
    else:
        try:
            descriptor = os.open(place, _DIRECTORY)
        except PermissionError:
            owner = place.stat().st_uid
            raise EmbeddedFolderUnsafe(f"{place} belongs to user id {owner}") from None
    with Directory(descriptor, place) as directory:
        yield directory


def resolved(path: Path) -> Path:
    """Return a path without links."""
    with _explained(path):
        try:
            return path.resolve()
        except RuntimeError as error:
            # How Python before 3.13 reports a loop of links.
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path)) from error


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Refuse a path if a part of it was replaced, such as a directory by a link."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ELOOP, errno.ENOTDIR):
            raise
        raise EmbeddedFolderUnsafe(
            f"{path} cannot be opened: a part of its path is not a directory, or was replaced"
        ) from error


def primary_group(uid: int) -> int:
    """Return an account's primary group. A folder's owner may not be in the folder's group."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        raise EmbeddedPlatform(
            f"The folder of the server belongs to user id {uid}, which has no account here",
            hint="Set TRUNKLINE_HOME to a folder that belongs to you, or create the account.",
        ) from None


def _descend(given: Path, home: Path, *, create: bool) -> int:
    """Open a directory one component at a time, recording every user that could replace a part."""
    pending = list(reversed(given.parts[1:]))
    place = Path("/")
    deciders: dict[int, Path] = {}
    links = 0
    descriptor = os.open("/", _PASS)
    try:
        while pending:
            name = pending.pop()
            sticky = _note_deciders(descriptor, place, deciders)
            if create:
                # Only the last new folder is private; its parents may contain other things.
                _make(name, descriptor, home, deciders, mode=0o755 if pending else 0o700)
            entry = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
            if stat.S_ISLNK(entry.st_mode):
                links += 1
                # As with fs.protected_symlinks: any user can create a link in a shared directory.
                if links > _MOST_LINKS or (sticky and entry.st_uid != 0):
                    raise EmbeddedFolderUnsafe(
                        f"{place / name} is a symbolic link of user id {entry.st_uid}"
                    )
                target = Path(os.readlink(name, dir_fd=descriptor))
                if target.is_absolute():
                    place = Path("/")
                    descriptor = _move(descriptor, os.open("/", _PASS))
                pending += reversed(target.parts[1:] if target.is_absolute() else target.parts)
                continue
            place = place.parent if name == ".." else place / name
            flags = _PASS if pending else _DIRECTORY
            descriptor = _move(descriptor, os.open(name, flags, dir_fd=descriptor))
        if place != home:
            raise EmbeddedFolderUnsafe(f"{given} led to {home} and now leads to {place}")
        owner = os.fstat(descriptor).st_uid
        for uid, path in deciders.items():
            if uid != owner:
                raise EmbeddedFolderUnsafe(
                    f"{path} belongs to user id {uid}, who could replace {home} of user id {owner}"
                )
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _move(old: int, new: int) -> int:
    os.close(old)
    return new


def _make(name: str, parent: int, home: Path, deciders: dict[int, Path], *, mode: int) -> None:
    """Create a missing directory on the path if only root controls its parent."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        for uid, path in deciders.items():
            raise EmbeddedFolderUnsafe(
                f"{home} does not exist, and {path} belongs to user id {uid}",
                hint=(
                    "Run the command as that user, or set TRUNKLINE_HOME to a folder of which "
                    "every parent belongs to root."
                ),
            ) from None
        with suppress(FileExistsError):
            os.mkdir(name, mode, dir_fd=parent)


def _note_deciders(descriptor: int, place: Path, deciders: dict[int, Path]) -> bool:
    """Record the owner of a directory on the path; return whether others may add entries to it."""
    status = os.fstat(descriptor)
    if status.st_uid != 0:
        deciders.setdefault(status.st_uid, place)
    shared = status.st_mode & stat.S_IWOTH or (status.st_mode & stat.S_IWGRP and status.st_gid != 0)
    if not shared:
        return False
    if not status.st_mode & stat.S_ISVTX:
        raise EmbeddedFolderUnsafe(
            f"{place} is writable by other users, who could replace its contents",
            hint=f"Make it private: chmod go-w {shlex.quote(str(place))}",
        )
    return True
