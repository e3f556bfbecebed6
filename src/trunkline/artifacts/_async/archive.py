"""A ZIP archive of artifacts: what it has, and then its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from trunkline.model import ArchiveContents

__all__ = ["AsyncArchive"]


class AsyncArchive:
    """A ZIP archive in chunks; `contents` is known before the first one.

    Memory does not grow with the archive. Close it when the reader leaves: that ends the reads.
    """

    def __init__(self, contents: ArchiveContents, chunks: AsyncIterator[bytes]) -> None:
        self.contents = contents
        self._chunks: Any = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk: bytes = await anext(self._chunks)
        return chunk

    async def aclose(self) -> None:
        """End the reads."""
        await self._chunks.aclose()
