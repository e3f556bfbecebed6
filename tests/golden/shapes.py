"""The shape of JSON: its keys as paths with the types of their values.

A key that is no identifier, such as the qualified name of a table, is data; `*` stands for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

__all__ = ["shape", "sorted_shape"]

_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}


def sorted_shape(values: Iterable[Any]) -> list[str]:
    """Return one line per path of all values together, such as `[].job_id: null | string`."""
    types: dict[str, set[str]] = {}
    for value in values:
        for path, kind in shape(value):
            types.setdefault(path, set()).add(kind)
    return [f"{path}: {' | '.join(sorted(kinds))}" for path, kinds in sorted(types.items())]


def shape(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and type of a value and everything in it; the whole value has the path `.`."""
    if isinstance(value, Mapping):
        yield path or ".", "object"
        for key, inner in value.items():
            yield from shape(inner, f"{path}.{key if str(key).isidentifier() else '*'}")
    elif isinstance(value, list | tuple):
        yield path or ".", "array"
        for inner in value:
            yield from shape(inner, f"{path}[]")
    else:
        # Times, lengths of time and ids of a driver are text in JSON.
        yield path or ".", _TYPES.get(type(value), "string")
