"""Values of the model as JSON objects: how they are encoded, and the types that describe them."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Final, Union, cast

import msgspec

__all__ = ["encode", "wire_type"]


def encode(value: Any) -> bytes:
    """Encode a value of the model: named tuples as objects, durations in seconds."""
    return _encoder.encode(_plain(value))


def _plain(value: Any) -> Any:
    plain: Any = value
    match value:
        case str() | int() | None:
            pass
        case tuple() if hasattr(value, "_asdict"):
            plain = {name: _plain(part) for name, part in value._asdict().items()}
        case list() | tuple():
            plain = [_plain(part) for part in value]
        case Mapping():
            plain = {str(name): _plain(part) for name, part in value.items()}
        case timedelta():
            plain = value.total_seconds()
        case _ if names := _fields(cast("Any", type(value))):
            plain = {
                name: _plain(default if (part := getattr(value, name)) is None else part)
                for name, default in names
            }
    return plain


@cache
def _fields(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return fields, with what stands for a value that is not kept, such as crashes of old jobs."""
    if issubclass(kind, msgspec.Struct):
        return tuple((name, None) for name in kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return tuple(
            (field.name, None if field.default is dataclasses.MISSING else field.default)
            for field in dataclasses.fields(kind)
        )
    return ()


_encoder: Final = msgspec.json.Encoder(decimal_format="number")


@cache
def wire_type(kind: Any) -> Any:
    """Return the type whose JSON is what `encode` writes for a value of this type.

    Named tuples and dataclasses become structs of the same name with the same fields. Clients
    decode these, and the OpenAPI document describes them.
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in {typing.Literal, Annotated}:
        return kind
    if origin in {Union, types.UnionType}:
        return Union[tuple(wire_type(part) for part in arguments)]  # noqa: UP007 - at run time
    if origin is not None and arguments:
        return _generic(origin, arguments)
    if isinstance(kind, type):
        return _of_class(kind)
    return kind


def _of_class(kind: type) -> type:
    if kind is timedelta:
        return float
    if issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind, include_extras=True)
        is_changed = any(wire_type(hint) != hint for hint in hints.values())
        return _struct(kind) if is_changed else kind
    if _is_named_tuple(kind) or dataclasses.is_dataclass(kind):
        return _struct(kind)
    return kind


def _generic(origin: Any, arguments: tuple[Any, ...]) -> Any:
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return list[wire_type(arguments[0])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, wire_type(arguments[1])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return list[wire_type(arguments[0])]  # type: ignore[misc]
    return origin[tuple(wire_type(part) for part in arguments)]


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


def _struct(kind: type) -> type:
    hints = typing.get_type_hints(kind, include_extras=True)
    if issubclass(kind, msgspec.Struct):
        names = list(kind.__struct_fields__)
    elif dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        names = list(cast("Any", kind)._fields)
    fields = [(name, wire_type(hints[name])) for name in names]
    made = msgspec.defstruct(kind.__name__, fields, kw_only=True, module=__name__)
    made.__doc__ = (kind.__doc__ or "").strip().partition("\n")[0]
    return made
