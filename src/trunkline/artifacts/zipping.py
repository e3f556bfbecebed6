"""ZIP archives that are written while they are read: constant memory, no temporary file."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any, Final, cast

from trunkline.artifacts.async_store import AsyncStore
from trunkline.artifacts.names import content_type_of, entry_names
from trunkline.artifacts.store import CHUNK, Store
from trunkline.errors import FileDamaged, FileMissing

__all__ = ["MANIFEST", "ZipEntry", "zip_chunks", "zip_stream"]

# Added if a file is missing, so that nobody takes the archive for complete.
MANIFEST: Final = "MISSING.txt"
_LEVEL: Final = 6
# Content that is compressed already: compressing it again costs time and saves nothing.
_COMPRESSED: Final = frozenset({
    "application/gzip", "application/pdf", "application/zip", "application/zstd",
})  # fmt: skip
_COMPRESSED_KINDS: Final = ("audio/", "video/", "image/")
_PLAIN_IMAGES: Final = frozenset({"image/bmp", "image/svg+xml", "image/tiff"})


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """A file of a store, and the name that it has in an archive."""

    name: str
    path: str
    # What was recorded when the file was written. A file of another size ends the archive.
    bytes: int | None = None
    content_type: str | None = None
    modified_at: datetime | None = None
    sha256: str | None = None
    # Why the file is known to be gone. It is listed in the manifest, and not looked for.
    gone: str | None = None


def zip_chunks(store: Store, entries: Iterable[ZipEntry]) -> Iterator[bytes]:
    """Return an archive of files in chunks; see `zip_stream`."""
    listed = list(entries)
    names = entry_names([MANIFEST, *(entry.name for entry in listed)])
    sink = _Sink()
    missing: list[tuple[str, str]] = []
    with zipfile.ZipFile(cast("IO[bytes]", sink), "w", allowZip64=True) as archive:
        for name, entry in zip(names[1:], listed, strict=True):
            if entry.gone is not None:
                missing.append((name, entry.gone))
                continue
            try:
                content = store.read(entry.path)
            except FileMissing as error:
                missing.append((name, error.message))
                continue
            yield from _entry(archive, sink, name, entry, content)
        if missing:
            archive.writestr(_info(MANIFEST, None, None), _manifest(missing, len(listed)))
    yield sink.take()


async def zip_stream(store: AsyncStore, entries: Iterable[ZipEntry]) -> AsyncIterator[bytes]:
    """Return an archive of files in chunks.

    Files are read and compressed in a thread, one chunk ahead of the reader at most. Names are made
    safe and unique. A file that is known to be gone, or that the store does not have, is listed in
    MISSING.txt; one that turns out to be damaged ends the archive with FileDamaged. Close the
    iterator when the client leaves: that ends the reads.
    """
    chunks = store.iterate(zip_chunks(store.store, entries))
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        await cast("Any", chunks).aclose()


class _Sink(io.RawIOBase):
    """Collects what zipfile writes, until it is taken. It cannot seek, so sizes follow the data."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self.waiting = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._parts.append(bytes(data))
        self.waiting += len(data)
        return len(data)

    def take(self) -> bytes:
        parts, self._parts, self.waiting = self._parts, [], 0
        return b"".join(parts)


def _entry(
    archive: zipfile.ZipFile, sink: _Sink, name: str, entry: ZipEntry, content: Iterator[bytes]
) -> Iterator[bytes]:
    info = _info(name, entry.content_type, entry.modified_at)
    info.file_size = entry.bytes or 0
    passed = 0
    digest = hashlib.sha256()
    # The size is only a promise until the end, so every entry is ready for more than 4 GB.
    with closing(cast("Any", content)), archive.open(info, "w", force_zip64=True) as target:
        for chunk in content:
            passed += len(chunk)
            digest.update(chunk)
            target.write(chunk)
            if sink.waiting >= CHUNK:
                yield sink.take()
    if entry.bytes is not None and passed != entry.bytes:
        raise FileDamaged(f"{entry.path} has {passed} bytes instead of {entry.bytes}")
    if entry.sha256 is not None and digest.hexdigest() != entry.sha256:
        raise FileDamaged(f"{entry.path} is not the file that was published")


def _info(name: str, content_type: str | None, at: datetime | None) -> zipfile.ZipInfo:
    moment = (at or datetime.now(UTC)).astimezone(UTC)
    # ZIP knows no earlier year.
    year = max(moment.year, 1980)
    info = zipfile.ZipInfo(
        name, (year, moment.month, moment.day, moment.hour, moment.minute, moment.second)
    )
    kind = (content_type or content_type_of(name)).partition(";")[0].strip().lower()
    is_compressed = kind in _COMPRESSED or (
        kind.startswith(_COMPRESSED_KINDS) and kind not in _PLAIN_IMAGES
    )
    info.compress_type = zipfile.ZIP_STORED if is_compressed else zipfile.ZIP_DEFLATED
    info._compresslevel = _LEVEL  # type: ignore[attr-defined]  # noqa: SLF001 - public from 3.13 on
    info.external_attr = 0o644 << 16
    return info


def _manifest(missing: Sequence[tuple[str, str]], total: int) -> str:
    lines = [f"{len(missing)} of {total} files are missing from this archive.", ""]
    return "\n".join([*lines, *(f"{name}: {reason}" for name, reason in missing), ""])
