"""JSON in and out: msgspec's types, dataclasses, and pydantic models where the user has them."""

from __future__ import annotations

import math
import re
import sys
from typing import Any, Final

import msgspec

__all__ = ["Codec", "encode", "is_pydantic", "misplaced_field"]


def is_pydantic(kind: object) -> bool:
    """Whether this is a pydantic model. Whoever has one has imported pydantic already."""
    pydantic = sys.modules.get("pydantic")
    return (
        pydantic is not None
        and isinstance(kind, type)
        and issubclass(kind, pydantic.BaseModel)
        # The class of all models has no fields, and no value can be read as one.
        and kind is not pydantic.BaseModel
    )


def _encode_unknown(value: Any) -> Any:
    if is_pydantic(type(value)):
        return value.model_dump(mode="json")
    raise TypeError(f"{type(value).__qualname__} is not JSON")


def _decode_unknown(kind: type, value: Any) -> Any:
    if is_pydantic(kind):
        try:
            return _validated(kind, value)
        except ValueError as error:
            # msgspec adds where in the document it was.
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
# After an even number of backslashes, which stand for themselves.
_NUL: Final = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")


def encode(value: object, *, in_order: bool = False) -> bytes:
    """Encode, or raise TypeError (also for what msgspec refuses with another class).

    With ``in_order`` equal sets become equal arrays, so that a repeated request is recognised.
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
    """JSON has no such number, and msgspec writes null for it: a result would silently change."""
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"JSON has no number {value}")
    if isinstance(value, dict):
        for part in value.values():
            _refuse_nan(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            _refuse_nan(part)


# As msgspec puts it; it has no class for each mistake.
_MISPLACED: Final = re.compile(
    r"^Object (?:missing required|contains unknown) field `(?P<field>.+?)`"
    r"(?: - at `\$\.?(?P<place>.*)`)?$"
)
_PYDANTIC_MISPLACED: Final = frozenset({"missing", "extra_forbidden"})


def misplaced_field(error: BaseException) -> str | None:
    """Return the field that a document lacks or has in excess; None for any other mistake."""
    found = _MISPLACED.match(str(error))
    if found is not None:
        return ".".join(part for part in (found["place"], found["field"]) if part)
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
    """Reads one type from JSON, strictly: "5" is no number."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._decoder = msgspec.json.Decoder(kind, dec_hook=_decode_unknown)

    def decode(self, document: bytes | str) -> Any:
        """Decode, or raise msgspec.ValidationError naming the place."""
        return self._decoder.decode(document)

    def convert(self, value: Any) -> Any:
        """The same from what a JSON reader made."""
        return msgspec.convert(value, self.kind, str_keys=True, dec_hook=_decode_unknown)

    def custom_types(self) -> list[type]:
        """Classes in it that neither msgspec nor pydantic can read."""
        found: list[type] = []
        _walk(msgspec.inspect.type_info(self.kind), found, set())
        return found


def _walk(info: object, found: list[type], seen: set[int]) -> None:
    if id(info) in seen:
        return
    seen.add(id(info))
    if isinstance(info, msgspec.inspect.CustomType):
        if not is_pydantic(info.cls):
            found.append(info.cls)
    elif isinstance(info, (msgspec.inspect.Type, msgspec.inspect.Field)):
        for name in info.__struct_fields__:
            _walk(getattr(info, name), found, seen)
    elif isinstance(info, tuple):
        for part in info:
            _walk(part, found, seen)


def _one_line(text: str) -> str:
    return "; ".join(line.strip() for line in text.splitlines() if line.strip())
