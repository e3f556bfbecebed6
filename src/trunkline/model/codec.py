"""Encodes and decodes JSON: msgspec's types, dataclasses, and the user's pydantic models."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Final

import msgspec

__all__ = ["Codec", "encode", "is_pydantic", "misplaced_field"]


def is_pydantic(kind: object) -> bool:
    """Whether this is a pydantic model. If there is one, pydantic has been imported."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None
        and isinstance(kind, type)
        and issubclass(kind, pydantic.BaseModel)
        # BaseModel itself has no fields, and no value can be read as one.
        and kind is not pydantic.BaseModel
    )


def _encode_unknown(value: Any) -> Any:
    if is_pydantic(type(value)):
        return value.model_dump(mode="json")
    # Types of other rooms say themselves how they are stored.
    as_json = getattr(type(value), "__trunkline_json__", None)
    if as_json is not None:
        return as_json(value)
    raise TypeError(f"{type(value).__qualname__} is not JSON")


def _decode_unknown(kind: type, value: Any) -> Any:
    if is_pydantic(kind):
        try:
            return _validated(kind, value)
        except ValueError as error:
            # msgspec adds the place in the document.
            raise ValueError(_one_line(str(error))) from error
    raise TypeError(f"{kind.__qualname__} cannot be read from JSON")


def _validated(kind: Any, value: Any) -> Any:
    try:
        return kind.model_validate(value)
    except ValueError:
        # Models are stored by the names of their fields, also where they are read by an alias.
        aliased = any(field.validation_alias for field in kind.model_fields.values())
        # From JSON, a strict field also takes text as a date.
        document = _ENCODER.encode(_without_computed(kind, value))
        return kind.model_validate_json(document, **({"by_name": True} if aliased else {}))


def _without_computed(kind: Any, value: Any) -> Any:
    """Drop computed fields, which a model stores but refuses if it forbids unknown fields."""
    if not isinstance(value, dict) or kind.model_config.get("extra") != "forbid":
        return value
    computed = kind.model_computed_fields
    return {name: part for name, part in value.items() if name not in computed}


_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_unknown)
# Sorts sets and dictionaries; refuses dictionaries whose keys are not text and sets of mixed types.
_SORTING_ENCODER: Final = msgspec.json.Encoder(enc_hook=_encode_unknown, order="deterministic")
# Matches \u0000 after an even number of backslashes, so that the last one is not escaped itself.
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def encode(value: object, *, in_order: bool = False) -> bytes:
    """Encode a value as JSON, or raise TypeError for every kind of refusal.

    With ``in_order``, equal sets become equal arrays, so that a repeated request has the same hash.
    """
    try:
        document = _sorted(value) if in_order else _ENCODER.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise TypeError(str(error)) from error
    if b"\\u0000" in document and _NUL.search(document):
        raise TypeError("PostgreSQL cannot store text with a NUL character (U+0000)")
    if b"null" in document:
        _refuse_nan(msgspec.to_builtins(value, enc_hook=_encode_unknown))
    return document


def _sorted(value: object) -> bytes:
    try:
        return _SORTING_ENCODER.encode(value)
    except TypeError:
        return _ENCODER.encode(value)


def _refuse_nan(value: object) -> None:
    """Refuse NaN and infinity: msgspec writes null for them, so a result would silently change."""
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"JSON has no number {value}")
    if isinstance(value, dict):
        for part in value.values():
            _refuse_nan(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _refuse_nan(part)


# msgspec has no exception class for each mistake, so match its messages.
_MISPLACED: Final = re.compile(
    r"^Object (?:missing required|contains unknown) field `(?P<field>.+?)`"
    r"(?: - at `\$\.?(?P<place>.*)`)?$"
)
_PYDANTIC_MISPLACED: Final = frozenset({"missing", "extra_forbidden"})


def misplaced_field(error: BaseException) -> str | None:
    """Return the field that a document lacks or has in excess; None for any other mistake."""
    match = _MISPLACED.match(str(error))
    if match is not None:
        return ".".join(part for part in (match["place"], match["field"]) if part)
    cause: BaseException | None = error
    while cause is not None:
        if type(cause).__module__.startswith("pydantic") and hasattr(cause, "errors"):
            mistakes = cause.errors(include_url=False)
            if {mistake["type"] for mistake in mistakes} <= _PYDANTIC_MISPLACED:
                return ".".join(str(part) for part in mistakes[0]["loc"])
            return None
        cause = cause.__cause__
    return None


class Codec:
    """Reads one type from JSON, strictly: "5" is not a number."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._decoder = msgspec.json.Decoder(kind, dec_hook=_decode_unknown)

    def decode(self, document: bytes | str) -> Any:
        """Decode JSON, or raise msgspec.ValidationError with the place in the document."""
        return self._decoder.decode(document)

    def convert(self, value: Any) -> Any:
        """Convert a value that was already read from JSON."""
        return msgspec.convert(value, self.kind, str_keys=True, dec_hook=_decode_unknown)

    def custom_types(self) -> list[type]:
        """Return the classes within the type that neither msgspec nor pydantic can read."""
        classes: list[type] = []
        _walk(msgspec.inspect.type_info(self.kind), classes, set())
        return classes


def _walk(info: object, classes: list[type], seen: set[int]) -> None:
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        if not is_pydantic(info.cls):
            classes.append(info.cls)
    elif isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)):
        for name in info.__struct_fields__:
            _walk(getattr(info, name), classes, seen)
    elif isinstance(info, tuple):
        for part in info:
            _walk(part, classes, seen)


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
