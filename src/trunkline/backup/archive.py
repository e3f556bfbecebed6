"""The backup file. It is written under a temporary name, so it is either complete or absent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final, Self

from trunkline.errors import (
    BackupError,
    BackupFileExists,
    BackupUnreadable,
    EmbeddedFolderUnsafe,
)

__all__ = ["FORMAT", "Archive", "Draft", "Manifest", "draft"]

FORMAT: Final = 1
_MANIFEST: Final = "manifest.json"
_DUMP: Final = "database.dump"
_CHECKSUM: Final = "sha256"
_BLOCK: Final = 512
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Facts that a dump lacks, and facts that a restore needs before it starts."""

    format: int = FORMAT
    trunkline: str
    created_at: str
    database: str
    # The major versions of the server and of the pg_dump that wrote the archive.
    server: int
    program: int
    # Rows by table, as in the dump.
    rows: dict[str, int]
    extensions: tuple[str, ...] = ()
    # Owners of objects. A restoring role that is not a superuser must be able to SET ROLE to each.
    owners: tuple[str, ...] = ()
    roles: tuple[dict[str, Any], ...] = ()
    memberships: tuple[dict[str, Any], ...] = ()
    settings: tuple[dict[str, Any], ...] = ()
    grants: tuple[dict[str, Any], ...] = field(default=())


class Draft:
    """A backup that is being written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def manifest(self, manifest: Manifest) -> None:
        """Write the first member."""
        self._member(_MANIFEST, json.dumps(asdict(manifest), indent=1).encode())

    def dump(self, stream: IO[bytes]) -> int:
        """Append the dump and return its size, which is not known before the pipe ends."""
        start = self._file.tell()
        self._file.write(bytes(_BLOCK))
        digest = hashlib.sha256()
        size = 0
        while chunk := stream.read(_CHUNK):
            self._file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        self._pad(size)
        end = self._file.tell()
        self._file.seek(start)
        self._file.write(_header(_DUMP, size))
        self._file.seek(end)
        self._member(_CHECKSUM, f"{digest.hexdigest()}  {_DUMP}\n".encode())
        self._file.write(bytes(2 * _BLOCK))
        return size

    def _member(self, name: str, content: bytes) -> None:
        self._file.write(_header(name, len(content)))
        self._file.write(content)
        self._pad(len(content))

    def _pad(self, size: int) -> None:
        self._file.write(bytes(-size % _BLOCK))


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    return member.tobuf(tarfile.GNU_FORMAT)


@contextmanager
def draft(target: Path, *, force: bool) -> Iterator[Draft]:
    """Write a backup; ``target`` appears, with mode 0600, when the block ends without an error.

    The folder is opened once, so the file ends up in it even if the path changes in the meantime.
    """
    temporary = f".{target.name}.{secrets.token_hex(4)}"
    # O_EXCL: an existing link of that name is neither followed nor replaced.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with contextlib.ExitStack() as resources:
        try:
            folder = resources.enter_context(_opened(target.absolute().parent))
            if not force and _exists(target.name, folder):
                raise BackupFileExists(f"{target} exists")
            handle = os.open(temporary, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise BackupError(
                f"{target} cannot be written: {error.strerror}", hint="Choose another folder."
            ) from error
        try:
            with os.fdopen(handle, "w+b") as file:
                yield Draft(file)
                file.flush()
                os.fsync(file.fileno())
            if force:
                os.replace(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
            else:
                _publish(temporary, target, folder)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
        with contextlib.suppress(OSError):
            os.fsync(folder)


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    """Open the folder. Root refuses it if another user could rename it, or a file in it."""
    if os.geteuid() != 0:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
        return
    # Only root needs this module, and it cannot be imported on platforms without a root user.
    from trunkline.embedded.directory import open_directory  # noqa: PLC0415

    with contextlib.ExitStack() as resources:
        try:
            found = resources.enter_context(open_directory(folder))
        except EmbeddedFolderUnsafe as error:
            raise _unsafe(error.message) from error
        if found.owner != 0:
            raise _unsafe(f"{folder} belongs to user id {found.owner}")
        if not found.mode & stat.S_ISVTX:
            try:
                found.require_private()
            except EmbeddedFolderUnsafe as error:
                raise _unsafe(error.message) from error
        yield found.descriptor


def _unsafe(problem: str) -> BackupError:
    return BackupError(
        f"Root cannot write a backup where another user could replace it: {problem}",
        hint="Choose a folder that belongs to root, or run the command as the other user.",
    )


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _publish(temporary: str, target: Path, folder: int) -> None:
    try:
        # Unlike a rename, a link fails if the name was taken in the meantime.
        os.link(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)
    except FileExistsError as error:
        raise BackupFileExists(f"{target} exists") from error
    except OSError:
        # The file system has no hard links.
        os.rename(temporary, target.name, src_dir_fd=folder, dst_dir_fd=folder)


class Archive:
    """A backup that is being read; its checksum has been verified."""

    def __init__(self, path: Path) -> None:
        try:
            self._tar = tarfile.open(path, "r:")  # noqa: SIM115 - closed by close()
        except (OSError, tarfile.TarError) as error:
            raise BackupUnreadable(f"{path} cannot be read: {error}") from error
        self._path = path
        try:
            self.manifest = self._manifest()
            self._compare_checksum()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._tar.close()

    def dump(self) -> IO[bytes]:
        """Open the dump."""
        return self._member(_DUMP)

    def _member(self, name: str) -> IO[bytes]:
        try:
            stream = self._tar.extractfile(name)
        except (KeyError, OSError, tarfile.TarError) as error:
            raise BackupUnreadable(f"{self._path} has no readable {name}") from error
        if stream is None:
            raise BackupUnreadable(f"{self._path} has no readable {name}")
        return stream

    def _read(self, name: str) -> str:
        try:
            return self._member(name).read().decode()
        except (OSError, tarfile.TarError, UnicodeDecodeError) as error:
            raise BackupUnreadable(f"{self._path}: {name} is damaged") from error

    def _manifest(self) -> Manifest:
        try:
            facts = json.loads(self._read(_MANIFEST))
            if facts["format"] != FORMAT:
                raise BackupUnreadable(
                    f"{self._path} has format {facts['format']}; this package reads {FORMAT}",
                    hint="Restore it with the version of trunkline that wrote it, or a newer one.",
                )
            return Manifest(**facts)
        except (ValueError, TypeError, KeyError) as error:
            raise BackupUnreadable(f"{self._path}: {_MANIFEST} is damaged") from error

    def _compare_checksum(self) -> None:
        """Check the whole dump first: pg_restore would detect damage halfway, or not at all."""
        digest = hashlib.sha256()
        try:
            with self.dump() as stream:
                while chunk := stream.read(_CHUNK):
                    digest.update(chunk)
        except (OSError, tarfile.TarError) as error:
            raise BackupUnreadable(f"{self._path}: {_DUMP} is damaged") from error
        if self._read(_CHECKSUM).split() != [digest.hexdigest(), _DUMP]:
            raise BackupUnreadable(f"{self._path}: {_DUMP} is damaged, its checksum differs")
