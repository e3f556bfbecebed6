"""Results that are too large for the database: the job's result then refers to a stored file."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final
from uuid import UUID

__all__ = ["KIND", "NAME", "may_be_large", "reference_of", "reference_to", "step_file_name"]

KIND: Final = "result"
NAME: Final = "result.json"
# The smallest value that an operator can set for max_payload_bytes.
_ALWAYS_FITS: Final = 1024
_FIELD: Final = "$artifact"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST: Final = 60


def may_be_large(document: str | None) -> bool:
    """Whether a result may not fit into the database. Most are far too small for that."""
    return document is not None and len(document) > _ALWAYS_FITS


def reference_to(artifact_id: UUID) -> dict[str, str]:
    """Return the result that is stored instead of a large one."""
    return {_FIELD: str(artifact_id)}


def reference_of(value: Any) -> UUID | None:
    """Return the artifact that a stored result refers to, or None if it is a plain result.

    The caller checks that the artifact is a result of the same job, so that a handler that returns
    such an object by itself reaches nothing else.
    """
    if not isinstance(value, dict) or len(value) != 1 or not isinstance(value.get(_FIELD), str):
        return None
    try:
        return UUID(value[_FIELD])
    except ValueError:
        return None


def step_file_name(kind: str, name: str, key: str) -> str:
    """Return the name of the file for the result of a step. Different steps have different ones."""
    digest = hashlib.blake2b("\0".join((kind, name, key)).encode(), digest_size=4).hexdigest()
    readable = _UNSAFE.sub("-", f"{kind}-{name}-{key}")[:_LONGEST].strip("-.")
    return f"{readable}-{digest}.json"
