"""The proof of a document: all its evidence in one archive, with the same bytes at every build."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import dataclass
from typing import Final

from trunkline_profiles.executor.handlers.evidence import BUNDLE, PARTS
from trunkline_profiles.executor.handlers.problems import BadWork
from trunkline_profiles.executor.handlers.protect import confirm
from trunkline_profiles.executor.handlers.store import Store

__all__ = ["Bundle", "build", "contents"]

# The earliest time of a ZIP, so that the build time is not part of the bytes.
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A stored proof."""

    sha256: str
    size: int
    parts: tuple[str, ...]


def build(store: Store, document: str) -> Bundle:
    """Store the evidence as an archive with a manifest of hashes."""
    record = confirm(store, document)
    parts = {name: store.need(document, name) for name in PARTS}
    manifest = {
        "document": document,
        "sha256": record.sha256,
        "parts": {name: hashlib.sha256(data).hexdigest() for name, data in parts.items()},
    }
    parts["manifest.json"] = json.dumps(manifest, indent=1, sort_keys=True).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(parts):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            # Otherwise the bytes would depend on the builder's platform.
            entry.create_system = 3
            archive.writestr(entry, parts[name])
    data = stream.getvalue()
    store.put(document, BUNDLE, data)
    return Bundle(hashlib.sha256(data).hexdigest(), len(data), tuple(sorted(parts)))


def contents(data: bytes) -> dict[str, bytes]:
    """The parts of a proof, checked against its manifest."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(parts["manifest.json"])
    for name, expected in manifest["parts"].items():
        if hashlib.sha256(parts.get(name, b"")).hexdigest() != expected:
            raise BadWork(f"{name} in the proof does not match its manifest")
    return parts
