"""A fingerprint of a type as JSON sees it: the same in every process that has the same code."""

from __future__ import annotations

import enum
import hashlib
import warnings
from typing import Any, Final

import msgspec

from trunkline.client.codec import is_pydantic

__all__ = ["fingerprint"]

_LENGTH: Final = 16
# Parts of a type that JSON does not show. A default may be an object whose text is never the same.
_HIDDEN: Final = frozenset(
    {"cls", "name", "default", "default_factory", "extra", "extra_json_schema"}
)


def fingerprint(kind: Any) -> str:
    """Return a short hash of what the type takes: fields, which of them are required, their types.

    Names of classes and modules do not count, so that moving a class changes nothing.
    """
    described = repr(_described(msgspec.inspect.type_info(kind), {}))
    return hashlib.sha256(described.encode()).hexdigest()[:_LENGTH]


def _described(part: Any, seen: dict[type, int]) -> Any:
    if isinstance(part, tuple):
        return [_described(one, seen) for one in part]
    if not isinstance(part, (msgspec.inspect.Type, msgspec.inspect.Field)):
        return _plain(part)
    cls = getattr(part, "cls", None)
    if isinstance(cls, type):
        if cls in seen:
            return ("again", seen[cls])
        seen[cls] = len(seen)
        if is_pydantic(cls):
            return _model(cls)
        if issubclass(cls, enum.Enum):
            return [_plain(member.value) for member in cls]
    names = [name for name in part.__struct_fields__ if name not in _HIDDEN]
    return (
        type(part).__name__,
        [(name, _described(getattr(part, name), seen)) for name in names],
    )


def _model(cls: Any) -> Any:
    with warnings.catch_warnings():
        # About defaults that JSON cannot hold; they do not count here.
        warnings.simplefilter("ignore")
        try:
            return _without_defaults(cls.model_json_schema())
        except Exception:  # noqa: BLE001 - a type of the user's without a JSON schema
            return [(name, field.is_required()) for name, field in cls.model_fields.items()]


def _without_defaults(schema: Any, *, of_fields: bool = False) -> Any:
    if isinstance(schema, list):
        return [_without_defaults(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return [
        (name, _without_defaults(part, of_fields=name in {"properties", "$defs"} and not of_fields))
        for name, part in schema.items()
        if of_fields or name != "default"
    ]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
