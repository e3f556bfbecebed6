"""Content of any form, in chunks of bytes, with size and hash measured while it passes."""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
)
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

from trunkline.artifacts.store import CHUNK, Written
from trunkline.errors import InvalidArgument

__all__ = [
    "AsyncContent",
    "Content",
    "Meter",
    "as_async_chunks",
    "chunks_of",
    "counted",
    "is_async",
]

Content: TypeAlias = (
    "bytes | bytearray | memoryview | os.PathLike[str] | IO[bytes] | Iterable[bytes]"
)
AsyncContent: TypeAlias = "Content | AsyncIterable[bytes]"


def chunks_of(content: object) -> Iterator[bytes]:
    """Return the content in chunks. A file is opened when the first chunk is read."""
    if isinstance(content, (bytes, bytearray, memoryview)):
        return _of_bytes(memoryview(content).cast("B"))
    if isinstance(content, os.PathLike):
        return _of_path(Path(content))
    if hasattr(content, "read"):
        return _of_file(cast("IO[bytes]", content))
    if isinstance(content, str) or not isinstance(content, Iterable):
        raise InvalidArgument(
            f"content of type {type(content).__name__} cannot be stored",
            hint="Pass bytes, a pathlib.Path, a binary file or an iterable of bytes.",
        )
    return _joined(content)


def is_async(content: object) -> bool:
    """Return whether the content has to be read in an event loop."""
    return isinstance(content, AsyncIterable) or inspect.iscoroutinefunction(
        getattr(content, "read", None)
    )


async def as_async_chunks(content: Any) -> AsyncGenerator[bytes]:
    """Return chunks of about 1 MB of asynchronous content."""
    source = content if isinstance(content, AsyncIterable) else _of_async_file(content)
    pieces: list[bytes] = []
    size = 0
    async for piece in source:
        pieces.append(_checked(piece))
        size += len(piece)
        if size >= CHUNK:
            yield pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)


class Meter:
    """Passes chunks on, and measures size and hash of what has passed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = chunks
        self._hash = hashlib.sha256()
        self._bytes = 0
        # An error of the source: a store must not report it as its own.
        self.failure: BaseException | None = None

    def __iter__(self) -> Iterator[bytes]:
        source = iter(self._chunks)
        while True:
            try:
                chunk = next(source)
            except StopIteration:
                return
            except BaseException as error:
                self.failure = error
                raise
            self._bytes += len(chunk)
            self._hash.update(chunk)
            yield chunk

    @property
    def written(self) -> Written:
        """Size and hash of what has passed."""
        return Written(self._bytes, self._hash.hexdigest())


def counted(chunks: Iterable[bytes], on_bytes: Callable[[int], None] | None) -> Iterable[bytes]:
    """Return the chunks; `on_bytes` gets the total before each is passed on."""
    return chunks if on_bytes is None else _counted(chunks, on_bytes)


def _counted(chunks: Iterable[bytes], on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    total = 0
    for chunk in chunks:
        total += len(chunk)
        on_bytes(total)
        yield chunk


def _of_bytes(view: memoryview) -> Iterator[bytes]:
    for start in range(0, len(view), CHUNK):
        yield bytes(view[start : start + CHUNK])


def _of_path(path: Path) -> Iterator[bytes]:
    with path.open("rb", buffering=0) as file:
        yield from _of_file(file)


def _of_file(file: IO[bytes]) -> Iterator[bytes]:
    while chunk := file.read(CHUNK):
        yield _checked(chunk)


async def _of_async_file(file: Any) -> AsyncIterator[bytes]:
    while chunk := await file.read(CHUNK):
        yield chunk


def _joined(source: Iterable[bytes]) -> Iterator[bytes]:
    # Small pieces are joined, and large ones are cut: a store gets chunks of about one size.
    pieces: list[bytes] = []
    size = 0
    with ExitStack() as stack:
        if close := getattr(source, "close", None):
            stack.callback(close)
        for piece in source:
            _checked(piece)
            if len(piece) > 2 * CHUNK:
                if pieces:
                    yield b"".join(pieces)
                    pieces, size = [], 0
                yield from _of_bytes(memoryview(piece))
                continue
            pieces.append(piece)
            size += len(piece)
            if size >= CHUNK:
                yield pieces[0] if len(pieces) == 1 else b"".join(pieces)
                pieces, size = [], 0
        if pieces:
            yield b"".join(pieces)


def _checked(piece: object) -> bytes:
    if not isinstance(piece, (bytes, bytearray, memoryview)):
        raise InvalidArgument(
            f"content yields {type(piece).__name__}, not bytes",
            hint="Open files in binary mode, and encode text: text.encode().",
        )
    return cast("bytes", piece)
