"""A fingerprint of a type's JSON form: the same in every process that has the same code."""

from __future__ import annotations

import enum
import hashlib
import warnings
from typing import Any, Final

from msgspec import inspect

from trunkline.model.codec import is_pydantic

__all__ = ["fingerprint"]

_LENGTH: Final = 16
# Parts of a type that do not affect its JSON. The text of a default may differ in each process.
_HIDDEN: Final = frozenset({"cls", "name", "default", "default_factory"})
# The same in the JSON schema of a pydantic model.
_COMMENTS: Final = frozenset(
    {"$defs", "default", "deprecated", "description", "examples", "mapping", "title"}
)
_FIELDS: Final = frozenset({"properties", "patternProperties"})
_SETS: Final = frozenset({"required", "enum", "anyOf", "oneOf", "allOf"})


def fingerprint(kind: Any) -> str:
    """Return a short hash of a type's fields, their types, and which of them are required.

    Docstrings, defaults, the order of fields and the names of classes and modules do not count.
    """
    description = repr(_described(inspect.type_info(kind), {}))
    return hashlib.sha256(description.encode()).hexdigest()[:_LENGTH]


def _described(part: Any, seen: dict[type, int]) -> Any:  # noqa: PLR0911 - a table
    if isinstance(part, inspect.Metadata):
        return _described(part.type, seen)
    if isinstance(part, tuple):
        return [_described(item, seen) for item in part]
    if not isinstance(part, (inspect.Type, inspect.Field)):
        return _plain(part)
    if isinstance(part, inspect.UnionType):
        return ("union", _sorted(_described(member, seen) for member in part.types))
    if isinstance(part, inspect.LiteralType):
        return ("literal", _sorted(part.values))
    cls = getattr(part, "cls", None)
    if isinstance(cls, type):
        if cls in seen:
            return ("again", seen[cls])
        seen[cls] = len(seen)
        if is_pydantic(cls):
            return _model(cls)
        if issubclass(cls, enum.Enum):
            return ("enum", _sorted(_plain(member.value) for member in cls))
    return (
        type(part).__name__,
        [
            (name, [_described(field, seen) for field in _fields(part)])
            if name == "fields"
            else (name, _described(getattr(part, name), seen))
            for name in part.__struct_fields__
            if name not in _HIDDEN
        ],
    )


def _fields(part: Any) -> list[inspect.Field]:
    """Return the fields sorted by name, or in their order if they are stored by position."""
    if isinstance(part, inspect.NamedTupleType) or getattr(part, "array_like", False):
        return list(part.fields)
    return sorted(part.fields, key=lambda field: field.encode_name)


def _model(cls: Any) -> Any:
    with warnings.catch_warnings():
        # Defaults that JSON cannot hold cause warnings, but do not count here.
        warnings.simplefilter("ignore")
        try:
            schema = cls.model_json_schema()
        except Exception:  # noqa: BLE001 - a user's type may have no JSON schema
            return sorted((name, field.is_required()) for name, field in cls.model_fields.items())
    return _schema(schema, schema.get("$defs", {}), {})


def _schema(part: Any, models: dict[str, Any], seen: dict[str, int]) -> Any:
    if isinstance(part, list):
        return [_schema(item, models, seen) for item in part]
    if not isinstance(part, dict):
        return part
    name = str(part.get("$ref", "")).removeprefix("#/$defs/")
    if name in models:
        # Identified by the order of first use, because these are names of classes.
        if name in seen:
            return ("again", seen[name])
        seen[name] = len(seen)
        return _schema(models[name], models, seen)
    return [
        (key, _keyword(key, value, models, seen))
        for key, value in sorted(part.items())
        if key not in _COMMENTS
    ]


def _keyword(key: str, value: Any, models: dict[str, Any], seen: dict[str, int]) -> Any:
    if key in _FIELDS and isinstance(value, dict):
        return [(name, _schema(field, models, seen)) for name, field in sorted(value.items())]
    description = _schema(value, models, seen)
    is_set = key in _SETS and isinstance(description, list)
    return _sorted(description) if is_set else description


def _sorted(parts: Any) -> list[Any]:
    return sorted(parts, key=repr)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
