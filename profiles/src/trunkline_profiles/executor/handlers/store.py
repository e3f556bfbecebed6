"""Evidence about documents in a folder that all workers share; files appear atomically."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from trunkline_profiles.executor.handlers.problems import BadWork

__all__ = ["Store"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Store:
    """One folder per document, one file per piece of evidence."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, document: str, name: str) -> Path:
        """The path of a piece of evidence."""
        for part in (document, name):
            # Names come from payloads, and none may lead out of the folder.
            if not _NAME.fullmatch(part):
                raise BadWork(f"{part!r} is not a valid name of a document or a file")
        return self.root / document / name

    def names(self, document: str) -> frozenset[str]:
        """The names of the evidence about a document."""
        folder = self.path(document, "x").parent
        if not folder.is_dir():
            return frozenset()
        return frozenset(entry.name for entry in folder.iterdir() if _NAME.fullmatch(entry.name))

    def get(self, document: str, name: str) -> bytes | None:
        """A piece of evidence, or None."""
        try:
            return self.path(document, name).read_bytes()
        except FileNotFoundError:
            return None

    def need(self, document: str, name: str) -> bytes:
        """A piece of evidence that must exist by now."""
        found = self.get(document, name)
        if found is None:
            raise BadWork(f"Document {document} has no {name}: it was not protected here")
        return found

    def put(self, document: str, name: str, data: bytes) -> Path:
        """Store a piece of evidence; a reader sees the complete old or the complete new one."""
        with self.writing(document, name) as stream:
            stream.write(data)
        return self.path(document, name)

    @contextmanager
    def writing(self, document: str, name: str) -> Iterator[BinaryIO]:
        """A stream whose content replaces the file when the block succeeds."""
        target = self.path(document, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The dot excludes an incomplete file from the result of names().
        descriptor, draft = tempfile.mkstemp(prefix=".", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            Path(draft).replace(target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
