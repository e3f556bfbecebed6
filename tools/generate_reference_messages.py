"""Reads from the source which messages and hints each error is raised with."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import trunkline
from trunkline.errors import TrunklineError

__all__ = ["Said", "said"]

_PACKAGE = Path(trunkline.__file__).parent


@dataclass(slots=True)
class Said:
    """The messages and hints of an error, with `<…>` in place of values."""

    messages: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    def add(self, call: ast.Call) -> None:
        message = _template(call.args[0]) if call.args else None
        hint = next((_template(one.value) for one in call.keywords if one.arg == "hint"), None)
        if message and message not in self.messages:
            self.messages.append(message)
        if hint and hint not in self.hints:
            self.hints.append(hint)


def said(classes: list[type[TrunklineError]]) -> dict[str, Said]:
    """The messages and hints with which each class is raised, by class name.

    A class that composes its message itself does so in its constructor; for the others, the whole
    package is searched.
    """
    found = {one.__name__: Said() for one in classes}
    composing = set()
    for one in classes:
        for call in _own_calls(one):
            composing.add(one.__name__)
            found[one.__name__].add(call)
    for path in sorted(_PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = _called(node)
            if name in found and name not in composing:
                assert isinstance(node, ast.Call)  # noqa: S101 - only calls have a name here
                found[name].add(node)
    return found


def _own_calls(one: type[TrunklineError]) -> Iterator[ast.Call]:
    """The calls of super().__init__ in the constructor, if the class has one."""
    if "__init__" not in vars(one) or one.__name__ in {"TrunklineError", "Refusal"}:
        return
    source = inspect.getsource(one.__init__)
    for node in ast.walk(ast.parse(textwrap.dedent(source))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "__init__"
        ):
            yield node


def _called(node: ast.AST) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name)) | ast.Call(func=ast.Attribute(attr=name)):
            return name
        case _:
            return ""


def _template(node: ast.expr) -> str | None:
    """The text of an expression, with its values as `<name>`; None if it is not text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_template(part) or "" for part in parts)
        case ast.FormattedValue(value=value):
            return f"<{_short(value)}>"
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            start = _template(left)
            return None if start is None else start + (_template(right) or "<…>")
        case _:
            return None


def _short(node: ast.expr) -> str:
    """A placeholder for a value: its last name, or dots."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _short(value)
        case _:
            return "…"
