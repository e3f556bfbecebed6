"""Breaks inside Python expressions: conditions, comparisons, order and bounds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.mutants.mutation import Change
from tools.mutants.python_source import Source

__all__ = ["changes"]

_OFF_BY_ONE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
_SWAPPED = {
    ast.Lt: ">",
    ast.LtE: ">=",
    ast.Gt: "<",
    ast.GtE: "<=",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
# A time never equals the bound exactly, so no test could detect `<` in place of `<=`.
_INSTANT = re.compile(
    r"(now|time|monotonic|clock|until|since|deadline|due|_at|ends|age)\b", re.IGNORECASE
)
_PLATFORM = re.compile(r"sys\.platform|os\.name|TYPE_CHECKING|version_info")


def changes(source: Source, node: ast.AST, _returns: ast.expr | None) -> Iterator[Change]:
    """The breaks of this node itself."""
    if isinstance(node, ast.BoolOp):
        yield from _dropped_terms(source, node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "comparison", source.span(node), f"({source.of(node.operand)})"
    elif isinstance(node, ast.Compare):
        yield from _comparison(source, node)
    elif isinstance(node, ast.IfExp):
        yield "condition", source.span(node), f"({source.of(node.body)})"
        yield "condition", source.span(node), f"({source.of(node.orelse)})"
    elif isinstance(node, ast.comprehension):
        for test in node.ifs:
            yield "condition", source.span(test), "True"
    elif isinstance(node, ast.Call):
        yield from _call(source, node)
    elif isinstance(node, ast.Slice) and node.upper is not None and node.lower is None:
        yield "bound", source.span(node.upper), ""


def _dropped_terms(source: Source, node: ast.BoolOp) -> Iterator[Change]:
    if _PLATFORM.search(source.of(node)):
        return
    last = len(node.values) - 1
    for place, value in enumerate(node.values):
        start, end = source.span(value)
        # The operator is dropped with its term, and so are brackets around the term.
        if place < last:
            span = start, source.span(node.values[place + 1])[0]
        else:
            span = source.span(node.values[place - 1])[1], end
        if _balanced(source.text[slice(*span)]):
            yield "condition", span, ""
        else:
            word = "True" if isinstance(node.op, ast.And) else "False"
            yield "condition", (start, end), word


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _comparison(source: Source, node: ast.Compare) -> Iterator[Change]:
    if len(node.ops) != 1 or _PLATFORM.search(source.of(node)):
        return
    (operator,) = node.ops
    (right,) = node.comparators
    kinds = [("comparison", _SWAPPED[type(operator)])]
    if type(operator) in _OFF_BY_ONE and not _INSTANT.search(source.of(node)):
        kinds.append(("bound", _OFF_BY_ONE[type(operator)]))
    gap = source.span(node.left)[1], source.span(right)[0]
    between = source.text[slice(*gap)]
    written = _written(operator)
    place = between.find(written)
    if place >= 0:
        start = gap[0] + place
        for kind, replacement in kinds:
            yield kind, (start, start + len(written)), replacement


def _written(operator: ast.cmpop) -> str:
    words: dict[type[ast.cmpop], str] = {
        ast.Lt: "<",
        ast.LtE: "<=",
        ast.Gt: ">",
        ast.GtE: ">=",
        ast.Eq: "==",
        ast.NotEq: "!=",
        ast.Is: "is",
        ast.IsNot: "is not",
        ast.In: "in",
        ast.NotIn: "not in",
    }
    return words[type(operator)]


def _call(source: Source, node: ast.Call) -> Iterator[Change]:
    if not isinstance(node.func, ast.Name):
        return
    name = node.func.id
    if name in _OPPOSITE:
        kind = "bound" if name in {"min", "max"} else "condition"
        yield kind, source.span(node.func), _OPPOSITE[name]
    elif name == "sorted" and not node.keywords:
        yield "order", source.span(node.func), "list"
    elif name == "sorted":
        yield "order", source.span(node), f"list({source.of(node.args[0])})"
    elif name == "reversed":
        yield "order", source.span(node.func), "list"
