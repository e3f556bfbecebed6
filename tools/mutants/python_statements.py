"""Breaks of whole Python statements: dropped, unguarded, unlocked, or a constant result."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TypeGuard

from tools.mutants.mutation import Change
from tools.mutants.python_source import Source

__all__ = ["changes"]

_LOG = re.compile(r"(_?log|_?logger|logging|warnings)\.")
_WAKE_UP = re.compile(r"notify|wake|\.set\(|\.release\(|put_nowait|call_soon")
_CHECK = re.compile(r"check|require|refuse|validate|raise_for")
_LOCK = re.compile(r"lock\b", re.IGNORECASE)
_PLATFORM = re.compile(r"sys\.platform|os\.name|TYPE_CHECKING|version_info|hasattr\(")
# The empty value of a result that is not optional.
_EMPTY = {
    "str": '""',
    "bytes": 'b""',
    "int": "0",
    "float": "0.0",
    "list": "[]",
    "tuple": "()",
    "dict": "{}",
    "set": "set()",
    "frozenset": "frozenset()",
    "Sequence": "()",
    "Mapping": "{}",
    "Iterable": "()",
}


def changes(source: Source, node: ast.AST, returns: ast.expr | None) -> Iterator[Change]:
    """The breaks of this node itself; ``returns`` is the annotation of its function."""
    if isinstance(node, ast.If):
        yield from _guard(source, node)
    elif isinstance(node, ast.Raise):
        yield "refusal", source.span(node), "pass"
    elif isinstance(node, ast.Expr):
        yield from _expression(source, node)
    elif isinstance(node, ast.Return) and node.value is not None:
        yield from _return(source, node.value, returns)
    elif isinstance(node, ast.Return | ast.Continue) and returns is not None:
        yield "condition", source.span(node), "pass"
    elif isinstance(node, ast.AugAssign | ast.Delete) or _changes_state(node):
        yield "statement", source.span(node), "pass"
    elif isinstance(node, ast.With | ast.AsyncWith):
        yield from _lock(source, node)


def _changes_state(node: ast.AST) -> TypeGuard[ast.Assign]:
    """An assignment to a part of an object; code without a local's assignment would not run."""
    targets = ast.Attribute | ast.Subscript
    return isinstance(node, ast.Assign) and isinstance(node.targets[0], targets)


def _guard(source: Source, node: ast.If) -> Iterator[Change]:
    if not _PLATFORM.search(source.of(node.test)):
        yield "condition", source.span(node.test), "True"
        yield "condition", source.span(node.test), "False"


def _expression(source: Source, node: ast.Expr) -> Iterator[Change]:
    value = node.value.value if isinstance(node.value, ast.Await) else node.value
    if isinstance(value, ast.Constant | ast.Yield | ast.YieldFrom):
        return
    text = source.of(value)
    if _LOG.match(text):
        return
    call = source.of(value.func) + "(" if isinstance(value, ast.Call) else text
    kind = "statement"
    if _WAKE_UP.search(call):
        kind = "wake-up"
    elif _CHECK.search(call):
        kind = "refusal"
    yield kind, source.span(node), "pass"


def _return(source: Source, value: ast.expr, returns: ast.expr | None) -> Iterator[Change]:
    declared = source.of(returns) if returns is not None else ""
    if isinstance(value, ast.Constant) and not isinstance(value.value, bool):
        return
    if declared == "bool":
        constants = ["True", "False"]
    elif "None" in declared:
        constants = ["None"]
    else:
        constants = [_EMPTY[name] for name in [declared.partition("[")[0]] if name in _EMPTY]
    for constant in constants:
        if source.of(value) != constant:
            yield "result", source.span(value), constant


def _lock(source: Source, node: ast.With | ast.AsyncWith) -> Iterator[Change]:
    first, last = node.items[0].context_expr, node.items[-1]
    if len(node.items) == 1 and last.optional_vars is None and _LOCK.search(source.of(first)):
        yield "lock", (source.span(node)[0], source.span(first)[1]), "if True"
