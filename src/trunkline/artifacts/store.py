"""What a store can do. All operations block; `AsyncStore` runs them in threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

__all__ = ["CHUNK", "Capabilities", "Store", "StoredFile", "Written"]

# Content passes through in pieces of this size: large enough that neither a change of threads nor a
# call of the hash counts, small enough that a hundred transfers at once need 100 MB.
CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a store answers by itself. For the rest, a slower way is taken."""

    # A ranged read transfers only the range. Otherwise the file is read up to its end.
    ranges: bool = True
    # `create` is atomic. Otherwise it checks for the file first, and two writers may both succeed.
    conditional_create: bool = True
    # Links for uploads are handed out. If not, no file has headers that an uploader chose, and a
    # bucket signs links for reading without looking at them.
    signed_uploads: bool = True


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store."""

    path: str
    bytes: int
    modified_at: datetime


@dataclass(frozen=True, slots=True)
class Written:
    """Size and hash of what was written, measured while it passed."""

    bytes: int
    sha256: str


@runtime_checkable
class Store(Protocol):
    """A place for files, named by paths with slashes.

    A file is visible with its whole content or not at all. Operations raise StoreError.
    """

    @property
    def address(self) -> str:
        """The address that `open_store` takes, without credentials."""

    @property
    def capabilities(self) -> Capabilities:
        """What the store answers by itself."""

    def put(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        content_type: str | None = None,
        filename: str | None = None,
    ) -> Written:
        """Write a file. If `chunks` raises, nothing becomes visible and the error is passed on."""

    def create(self, path: str, content: bytes) -> bool:
        """Write a small file if there is none at that path; return whether there was none."""

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the content in chunks, from byte `start` up to `stop`. Close it to end early.

        Raises FileMissing at once, not at the first chunk.
        """

    def head(self, path: str) -> StoredFile:
        """Return size and time of a file."""

    def delete(self, paths: Sequence[str]) -> None:
        """Delete files. A file that does not exist is no error."""

    def list(self, prefix: str = "", after: str = "") -> Iterator[StoredFile]:
        """Return files whose paths begin with the prefix and sort after `after`, in that order."""

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
        """Return a link that works without signing in, until it expires.

        `method` is GET, or PUT for an upload, of at most `max_bytes` where the store can tell. With
        a content type, a bucket refuses to sign for a file that a browser might run scripts of.
        """
