"""Arguments and results of steps: their hashes, their JSON and their types."""

from __future__ import annotations

import hashlib
import typing
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from trunkline.errors import InvalidArgument, ResultNotStorable, StepMismatch, WrongResult
from trunkline.model.codec import Codec, encode

__all__ = ["arguments_hash", "check_on_change", "converted", "result_codec", "stored", "typed"]

_ANY: Final = Codec(Any)
_LONGEST_VALUE: Final = 4000


def check_on_change(on_change: str) -> None:
    """Refuse anything but "fail" and "reuse"."""
    if on_change not in {"fail", "reuse"}:
        raise InvalidArgument(
            "on_change is not valid",
            hint='Pass "fail" or "reuse".',
            detail={"on_change": on_change},
        )


def arguments_hash(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """Return a hash that tells other arguments apart.

    Of an argument that is not JSON, such as a connection, only the type counts.
    """
    try:
        document = encode((args, kwargs), in_order=True)
    except TypeError:
        parts = [_encoded(value) for value in args]
        parts += [name.encode() + b"=" + _encoded(kwargs[name]) for name in sorted(kwargs)]
        document = b"\0".join(parts)
    digest = hashlib.blake2b(document, digest_size=8).digest()
    return int.from_bytes(digest, signed=True)


def _encoded(value: Any) -> bytes:
    try:
        return encode(value, in_order=True)
    except TypeError:
        return type(value).__qualname__.encode()


def result_codec(function: Callable[..., Any]) -> Codec:
    """Return the codec of a function's return annotation, or of plain JSON if it has none."""
    while isinstance(function, partial):
        function = function.func
    function = getattr(function, "__func__", function)
    try:
        return _codec_of(function)
    except TypeError:
        # Not hashable.
        return _ANY


@lru_cache(maxsize=1024)
def _codec_of(function: Callable[..., Any]) -> Codec:
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except (AttributeError, NameError, TypeError):
        return _ANY
    kind = hints.get("return", Any)
    if kind is Any or isinstance(kind, typing.TypeVar):
        return _ANY
    try:
        codec = Codec(kind)
        return _ANY if codec.custom_types() else codec
    except (TypeError, NameError):
        return _ANY


def stored(name: str, value: Any, codec: Codec) -> tuple[str | None, Any]:
    """Return a result as JSON text and as later attempts read it; refuse one that they cannot."""
    try:
        document = encode(value)
    except TypeError as error:
        raise ResultNotStorable(
            f"The result of step {name} cannot be stored: {error}",
            hint="Return JSON values, dataclasses, msgspec structs or pydantic models.",
        ) from error
    try:
        decoded = codec.decode(document)
    except Exception as error:
        # Validators of the user's types may raise anything.
        raise WrongResult(
            f"The result of step {name} does not match its annotation: {error}",
            value=document.decode()[:_LONGEST_VALUE],
        ) from error
    return (None if document == b"null" else document.decode()), decoded


def typed(name: str, document: str | None, codec: Codec) -> Any:
    """Return a recorded result as the type in the annotation."""
    try:
        return codec.decode(b"null" if document is None else document)
    except Exception as error:
        raise StepMismatch(
            f"The recorded result of step {name} does not match its annotation: {error}",
            result=f"the result of step {name}",
        ) from error


def converted(name: str, value: Any, kind: Any) -> Any:
    """Return the payload of an event as a type; None for plain JSON values."""
    if kind is None:
        return value
    try:
        return Codec(kind).convert(value)
    except Exception as error:
        raise StepMismatch(
            f"The payload of event {name} is not what it has to be: {error}",
            result=f"the payload of event {name}",
        ) from error
