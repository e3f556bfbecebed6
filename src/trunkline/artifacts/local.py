"""A store in a local folder."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal, NoReturn

from trunkline.artifacts.content import Meter
from trunkline.artifacts.link_secrets import LinkSecrets
from trunkline.artifacts.links import signed_link, signed_upload
from trunkline.artifacts.names import is_safe_path
from trunkline.artifacts.store import CHUNK, Capabilities, StoredFile, Written
from trunkline.errors import (
    FileMissing,
    InvalidArgument,
    StoreDenied,
    StoreError,
    StoreFolderUnsafe,
    StoreFull,
    StoreUnreachable,
)

__all__ = ["LocalStore"]

# Unfinished uploads and link secrets; hidden names are neither listed nor readable.
_PRIVATE: Final = ".trunkline"
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_UNSAFE: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR})


class LocalStore:
    """Files in a folder, which the workers and the clients of one machine share.

    A file is written under a hidden name, flushed to disk, and renamed: a crash leaves either the
    whole file or none. No symbolic link below the folder is followed. `link_base` is the URL under
    which your server answers links with `answer_link`.
    """

    def __init__(self, folder: str | os.PathLike[str], *, link_base: str = "/files") -> None:
        if os.open not in os.supports_dir_fd:
            raise StoreError(
                "A local store needs a POSIX system", hint="Use a bucket: s3://bucket/prefix."
            )
        self.folder = Path(folder).absolute()
        self.link_base = link_base.rstrip("/")
        self.secrets = LinkSecrets(self.folder / _PRIVATE / "link-secrets")

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return _again, (str(self.folder), self.link_base)

    def __repr__(self) -> str:
        return f"LocalStore({str(self.folder)!r})"

    @property
    def address(self) -> str:
        """The address that `open_store` takes."""
        return self.folder.as_uri()

    @property
    def capabilities(self) -> Capabilities:
        """A folder can do everything; links need a server of yours that calls `answer_link`."""
        return Capabilities()

    def put(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        content_type: str | None = None,  # noqa: ARG002 - links carry it
        filename: str | None = None,  # noqa: ARG002 - links carry it
    ) -> Written:
        """Write a file; see Store.put."""
        parts = _parts(path)
        meter = Meter(chunks)
        with _errors(path, meter), self._opened(_PRIVATE, "uploads", make=True) as uploads:
            name = secrets.token_hex(16)
            _write(uploads, name, meter)
            try:
                with self._opened(*parts[:-1], make=True) as folder:
                    os.rename(name, parts[-1], src_dir_fd=uploads, dst_dir_fd=folder)
                    os.fsync(folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name, dir_fd=uploads)
                raise
        return meter.written

    def create(self, path: str, content: bytes) -> bool:
        """Write a small file if there is none; see Store.create."""
        return self._create(path, [content])

    def receive(self, path: str, chunks: Iterable[bytes]) -> Literal["new", "same", "other"]:
        """Write what is uploaded through a link. A file that exists stays as it is.

        Returns whether the file is new, was there with the same content, or has another one.
        """
        meter = Meter(chunks)
        if self._create(path, meter):
            return "new"
        digest = hashlib.sha256()
        for chunk in self.read(path):
            digest.update(chunk)
        return "same" if digest.hexdigest() == meter.written.sha256 else "other"

    def _create(self, path: str, content: Iterable[bytes]) -> bool:
        parts = _parts(path)
        meter = content if isinstance(content, Meter) else None
        with _errors(path, meter), self._opened(_PRIVATE, "uploads", make=True) as uploads:
            name = secrets.token_hex(16)
            _write(uploads, name, content)
            try:
                with self._opened(*parts[:-1], make=True) as folder:
                    os.link(
                        name,
                        parts[-1],
                        src_dir_fd=uploads,
                        dst_dir_fd=folder,
                        follow_symlinks=False,
                    )
                    os.fsync(folder)
            except FileExistsError:
                return False
            finally:
                os.unlink(name, dir_fd=uploads)
        return True

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the content in chunks; see Store.read."""
        with _errors(path):
            descriptor = self._open_file(path)
        return _chunks(path, descriptor, start, stop)

    def head(self, path: str) -> StoredFile:
        """Return size and time of a file."""
        with _errors(path):
            descriptor = self._open_file(path)
            try:
                return _stored(path, os.fstat(descriptor))
            finally:
                os.close(descriptor)

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files, and the folders that become empty."""
        for path in paths:
            parts = _parts(path)
            with _errors(path), suppress(FileNotFoundError):
                with self._opened(*parts[:-1]) as folder:
                    os.unlink(parts[-1], dir_fd=folder)
                    os.fsync(folder)
                self._prune(parts[:-1])

    def list(self, prefix: str = "", after: str = "") -> Iterator[StoredFile]:
        """Return files in the order of their paths; see Store.list."""
        with _errors(prefix):
            yield from self._walk((), prefix, after)

    def sign(
        self,
        path: str,
        *,
        method: str = "GET",
        expires_in: int = 3600,
        content_type: str | None = None,
        filename: str | None = None,
        max_bytes: int | None = None,
    ) -> str:
        """Return a link that `answer_link` accepts until it expires."""
        _parts(path)
        if method == "PUT":
            return signed_upload(
                self.secrets.signing(),
                self.link_base,
                path,
                expires_in=expires_in,
                max_bytes=max_bytes,
            )
        if method != "GET":
            raise StoreError(
                f"A local store signs no links for {method}", hint="Sign one for GET or PUT."
            )
        return signed_link(
            self.secrets.signing(),
            self.link_base,
            path,
            expires_in=expires_in,
            content_type=content_type,
            filename=filename or path.rpartition("/")[2],
        )

    def abandon_uploads(self, before: datetime) -> int:
        """Remove unfinished uploads of processes that died; return how many."""
        removed = 0
        with (
            _errors("uploads"),
            suppress(FileNotFoundError),
            self._opened(_PRIVATE, "uploads") as folder,
        ):
            for name in os.listdir(folder):  # noqa: PTH208 - by its descriptor
                with suppress(FileNotFoundError):
                    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
                    if status.st_mtime < before.timestamp():
                        os.unlink(name, dir_fd=folder)
                        removed += 1
        return removed

    @contextmanager
    def _opened(self, *parts: str, make: bool = False) -> Iterator[int]:
        """Open a folder of the store, one part after the other, without following links."""
        if make:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.folder, _FOLDER & ~getattr(os, "O_NOFOLLOW", 0))
        try:
            for part in parts:
                if make:
                    try:
                        os.mkdir(part, 0o700, dir_fd=descriptor)
                        os.fsync(descriptor)
                    except FileExistsError:
                        pass
                inner = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def _open_file(self, path: str) -> int:
        parts = _parts(path)
        with self._opened(*parts[:-1]) as folder:
            # Not blocking, because a named pipe would wait for a writer.
            descriptor = os.open(parts[-1], os.O_RDONLY | os.O_NONBLOCK | _FILE, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise StoreFolderUnsafe(f"{path} is not a regular file")
        return descriptor

    def _prune(self, parts: Sequence[str]) -> None:
        for depth in range(len(parts), 0, -1):
            with self._opened(*parts[: depth - 1]) as folder:
                try:
                    os.rmdir(parts[depth - 1], dir_fd=folder)
                except OSError:
                    # Not empty, or another process was faster.
                    return

    def _walk(self, parts: tuple[str, ...], prefix: str, after: str) -> Iterator[StoredFile]:
        try:
            with self._opened(*parts) as folder, os.scandir(folder) as found:
                entries = [
                    (entry.name + ("/" if entry.is_dir(follow_symlinks=False) else ""), entry.name)
                    for entry in found
                    if not entry.name.startswith(".")
                ]
        except FileNotFoundError:
            # The store has no file yet, or the folder was removed while it was listed.
            return
        # Folders sort as if they ended with a slash, so that paths come in the order of a bucket.
        for sort_key, name in sorted(entries):
            path = "/".join((*parts, sort_key))
            if path.endswith("/"):
                wanted = path.startswith(prefix) or prefix.startswith(path)
                # Everything below sorts before `after` if the folder itself does.
                if wanted and (path >= after or after.startswith(path)):
                    yield from self._walk((*parts, name), prefix, after)
            elif path.startswith(prefix) and path > after:
                with suppress(FileMissing, StoreFolderUnsafe):
                    yield self.head(path)


def _again(folder: str, link_base: str) -> LocalStore:
    return LocalStore(folder, link_base=link_base)


def _write(folder: int, name: str, chunks: Iterable[bytes]) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FILE, 0o600, dir_fd=folder)
    try:
        for chunk in chunks:
            view = memoryview(chunk)
            while view:
                view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(descriptor)


def _chunks(path: str, descriptor: int, start: int, stop: int | None) -> Iterator[bytes]:
    try:
        position = start
        while stop is None or position < stop:
            wanted = CHUNK if stop is None else min(CHUNK, stop - position)
            with _errors(path):
                chunk = os.pread(descriptor, wanted, position)
            if not chunk:
                return
            position += len(chunk)
            yield chunk
    finally:
        os.close(descriptor)


def _stored(path: str, status: os.stat_result) -> StoredFile:
    return StoredFile(path, status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


def _parts(path: str) -> list[str]:
    if not is_safe_path(path):
        raise InvalidArgument(
            "the path of a stored file is not valid",
            detail={"path": ascii(path)[:300]},
            hint="Use names separated by slashes. No name may be empty or begin with a dot.",
        )
    return path.split("/")


@contextmanager
def _errors(path: str, meter: Meter | None = None) -> Iterator[None]:
    """Turn errors of the operating system into ours, but not those of the content's source."""
    try:
        yield
    except OSError as error:
        if meter is not None and meter.failure is error:
            raise
        _raise(error, path)


def _raise(error: OSError, path: str) -> NoReturn:
    reason = error.strerror or str(error)
    if isinstance(error, FileNotFoundError):
        raise FileMissing(f"The store has no file {path}") from error
    if error.errno in _FULL:
        raise StoreFull(f"The store has no space for {path}: {reason}") from error
    if error.errno in _DENIED:
        raise StoreDenied(f"The store does not allow access to {path}: {reason}") from error
    if error.errno in _UNSAFE:
        raise StoreFolderUnsafe(f"{path} is behind a link, or not a file: {reason}") from error
    raise StoreUnreachable(f"The store failed at {path}: {reason}") from error
