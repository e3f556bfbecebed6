"""Reads files that earlier tasks have published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

from trunkline_profiles.studio.handlers.problems import StudioProblem

__all__ = ["Files", "Readable"]


class Readable(Protocol):
    """The part of a store that reading needs."""

    def read(self, path: str, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """Return the content in chunks."""
        ...


class Files:
    """The store of the application, opened when it is first used."""

    def __init__(self, open_store: Callable[[], Readable]) -> None:
        self._open = open_store

    def content(self, path: str, sha256: str) -> bytes:
        """Return a file; raise if it is not the one that was published."""
        content = b"".join(self._store.read(path))
        if hashlib.sha256(content).hexdigest() != sha256:
            raise StudioProblem(f"{path} is not the file that was published")
        return content

    @cached_property
    def _store(self) -> Readable:
        return self._open()
