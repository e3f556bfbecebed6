"""Reads the fields of a class from its source, with the comment above each."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Field", "fields"]


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a dataclass or TypedDict, or an attribute that the constructor sets."""

    name: str
    kind: str
    default: str
    meaning: str


def fields(value: type) -> list[Field]:
    """The public fields in the order of the source, then those of our base classes."""
    found: dict[str, Field] = {}
    for owner in value.__mro__:
        if owner is value or owner.__module__.startswith("trunkline"):
            for field in _own_fields(owner):
                found.setdefault(field.name, field)
    return list(found.values())


def _own_fields(value: type) -> list[Field]:
    source = textwrap.dedent(inspect.getsource(value))
    lines = source.splitlines()
    (found,) = ast.parse(source).body
    if not isinstance(found, ast.ClassDef):
        raise TypeError(f"the source of {value} is not a class")
    return [
        Field(name, kind, default, _comment(lines, node.lineno))
        for node in _statements(found)
        for name, kind, default in _declared(node)
        if not name.startswith("_")
    ]


def _statements(found: ast.ClassDef) -> Iterator[ast.stmt]:
    for node in found.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            yield from node.body
        else:
            yield node


def _declared(node: ast.stmt) -> Iterator[tuple[str, str, str]]:
    match node:
        case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
            yield name, ast.unparse(kind), _default(value)
        case ast.AnnAssign(
            target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=kind
        ):
            yield name, ast.unparse(kind), ""
        case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
            yield name, "", ""
        case _:
            return


def _default(value: ast.expr | None) -> str:
    match value:
        case None:
            return ""
        case ast.Call(keywords=[ast.keyword(arg="default_factory", value=factory)]):
            return f"{ast.unparse(factory)}()"
        case _:
            return ast.unparse(value)


def _comment(lines: list[str], line: int) -> str:
    """The comment lines directly above, up to the mark of a generated region."""
    found: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.strip().startswith("# ") or text.strip().startswith("# <"):
            break
        found.insert(0, text.strip().removeprefix("# "))
    return " ".join(found)
