"""Storage of uploads and of files derived from them, in a folder per user.

An object store has the same two calls. This one is a plain folder that all workers share.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from trunkline_profiles.clinical.handlers.problems import BadDocument

__all__ = ["Files", "Folder", "left_by"]

_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Files(Protocol):
    """A store of complete files by path; each path begins with the id of its user."""

    def read(self, patient: UUID, path: str) -> bytes:
        """The content; BadDocument if it does not exist or belongs to another user."""

    def write(self, patient: UUID, path: str, data: bytes) -> str:
        """Store the file atomically, and return its path."""


class Folder:
    """Files in a folder of this machine or of a shared disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, patient: UUID, path: str) -> bytes:
        try:
            return self._place(patient, path).read_bytes()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise BadDocument(f"There is no file {path}") from error

    def write(self, patient: UUID, path: str, data: bytes) -> str:
        target = self._place(patient, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        # The dot makes it a name that no stored path can have.
        descriptor, draft = tempfile.mkstemp(prefix=".", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
            Path(draft).replace(target)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise
        return path

    def _place(self, patient: UUID, path: str) -> Path:
        """Refuse a path into another user's folder, because paths come from payloads and rows."""
        first, *rest = path.split("/")
        if first != str(patient) or not rest:
            raise BadDocument(f"{path!r} is not in the folder of its patient")
        for part in rest:
            if not _PART.fullmatch(part):
                raise BadDocument(f"{part!r} cannot be part of a path")
        return self.root.joinpath(first, *rest)


def left_by(patient: UUID, file: UUID, stage: str) -> str:
    """The path of a stage's results for a file, which the following stages read."""
    return f"{patient}/{file}/{stage}.json"
