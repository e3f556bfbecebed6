"""Protection: stores the SHA-256 of a document and a copy of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Final

from trunkline_profiles.executor.handlers.evidence import DOCUMENT, RECORD
from trunkline_profiles.executor.handlers.problems import BadWork
from trunkline_profiles.executor.handlers.store import Store

__all__ = ["Record", "confirm", "open_document", "protect", "read_record"]

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a protected document."""

    document: str
    algorithm: str
    sha256: str
    size: int

    @property
    def digest(self) -> bytes:
        return bytes.fromhex(self.sha256)


def open_document(inbox: Path, *, path: str | None, content: str | None) -> BinaryIO:
    """The document as a stream: a file of the inbox, or base64 text from the payload."""
    if (path is None) == (content is None):
        raise BadWork("Pass either the path of a file in the inbox or its content in base64")
    if content is not None:
        try:
            return io.BytesIO(base64.b64decode(content, validate=True))
        except binascii.Error as error:
            raise BadWork(f"The content is not base64: {error}") from error
    folder = inbox.resolve()
    target = (folder / (path or "")).resolve()
    if not target.is_relative_to(folder):
        raise BadWork(f"{path!r} leads out of the inbox")
    try:
        return target.open("rb")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise BadWork(f"There is no file {path!r} in the inbox") from error


def protect(store: Store, document: str, stream: BinaryIO) -> Record:
    """Store a copy of the document and the record of its hash; a repetition changes nothing."""
    digest = hashlib.sha256()
    size = 0
    with store.writing(document, DOCUMENT) as copy:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            copy.write(chunk)
        record = Record(document, "sha256", digest.hexdigest(), size)
        earlier = store.get(document, RECORD)
        if earlier is not None and _decode(earlier) != record:
            # Raised within the block, so that the stored copy stays.
            raise BadWork(f"Document {document} is protected already, with another content")
    store.put(document, RECORD, json.dumps(asdict(record), sort_keys=True).encode())
    return record


def read_record(store: Store, document: str) -> Record:
    """The record of a document that was protected."""
    return _decode(store.need(document, RECORD))


def confirm(store: Store, document: str) -> Record:
    """Hash the stored copy again; it must match the record."""
    record = read_record(store, document)
    found = hashlib.sha256()
    try:
        with store.path(document, DOCUMENT).open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                found.update(chunk)
    except FileNotFoundError as error:
        raise BadWork(f"The kept copy of {document} is gone") from error
    if found.hexdigest() != record.sha256:
        raise BadWork(f"The kept copy of {document} was changed after it was protected")
    return record


def _decode(data: bytes) -> Record:
    return Record(**json.loads(data))
