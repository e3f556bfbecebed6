"""The Python API as lines: every public name with its parameters, fields, members and values.

Public is what docs/reference/python.md describes: the names in `__all__` of its modules, and what
they lead to, such as the arguments of `@app.task`. The attributes of errors are in errors.txt.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any, is_typeddict

from tools.generate_reference_fields import fields
from tools.generate_reference_python import INNER, LED_TO, MADE, MODULES

__all__ = ["lines"]

PACKAGES = (*MODULES, "trunkline.errors")
# Where something is defined is no part of its name.
_QUALIFIER = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
_KINDS: dict[object, str] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional ",
    inspect.Parameter.KEYWORD_ONLY: "keyword ",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def lines() -> Iterator[str]:
    """Yield the names sorted; parameters and fields stay in their own order."""
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in sorted(module.__all__):
            yield from _value(f"{package}.{name}", getattr(module, name))
    for led_to in LED_TO.values():
        for home, name in led_to.values():
            yield from _class(name, getattr(importlib.import_module(home), name))


def _value(name: str, value: Any) -> Iterator[str]:
    if name.startswith("trunkline.errors.") and inspect.isclass(value):
        yield f"{name}: class"
    elif inspect.isclass(value):
        yield from _class(name, value)
    elif inspect.isfunction(value):
        yield from _function(name, value)
    else:
        yield f"{name}: {type(value).__name__}"


def _class(name: str, value: type) -> Iterator[str]:
    yield f"{name}: class"
    if issubclass(value, enum.Enum):
        for one in value:
            yield f"{name}: member {one.name} = {one.value!r}"
        return
    # Callers do not construct these classes themselves.
    constructed = not (value.__name__ in MADE or is_typeddict(value))
    if constructed:
        yield from _parameters(name, value)
    parameters = inspect.signature(value).parameters if constructed else {}
    for field in fields(value):
        if field.name in parameters:
            continue
        default = f" = {field.default}" if field.default else ""
        kind = f": {field.kind}" if field.kind else ""
        yield f"{name}: field {field.name}{kind}{default}"
    for member, found in sorted(_members(value)):
        if isinstance(found, property):
            yield f"{name}.{member}: property -> {_returned(found.fget)}"
        else:
            yield from _function(f"{name}.{member}", found)


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield public methods and properties that are ours."""
    seen: set[str] = set()
    for owner in value.__mro__:
        if not owner.__module__.startswith("trunkline"):
            continue
        for name, found in vars(owner).items():
            function = found.__func__ if isinstance(found, classmethod | staticmethod) else found
            if name.startswith("_") or name in INNER or name in seen:
                continue
            if inspect.isfunction(function) or isinstance(function, property):
                seen.add(name)
                yield name, function


def _function(name: str, value: Any) -> Iterator[str]:
    word = "async def" if inspect.iscoroutinefunction(value) else "def"
    yield f"{name}: {word} -> {_returned(value)}"
    yield from _parameters(name, value)


def _parameters(name: str, value: Any) -> Iterator[str]:
    try:
        signature = inspect.signature(value)
    except ValueError:
        return
    for one in signature.parameters.values():
        if one.name in {"self", "cls"}:
            continue
        kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
        default = "" if one.default is one.empty else f" = {_default(one.default)}"
        yield f"{name}: parameter {_KINDS.get(one.kind, '')}{one.name}{kind}{default}"


def _returned(value: Any) -> str:
    found = inspect.signature(value).return_annotation
    return "nothing said" if found is inspect.Signature.empty else _annotation(found)


def _annotation(value: Any) -> str:
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return _QUALIFIER.sub("", text)


def _default(value: Any) -> str:
    # A sentinel or a factory has no text that would mean anything.
    text = repr(value)
    return "…" if text.startswith("<") else text
