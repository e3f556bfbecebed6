"""Finds the places in a Python file where a small break is possible, by its syntax tree."""

from __future__ import annotations

import ast

from tools.mutants import python_expressions, python_statements
from tools.mutants.mutation import Mutation, numbered
from tools.mutants.python_source import Source

__all__ = ["sites"]

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
# Constructors mostly store their arguments, so any use would detect it; __repr__ is for debugging.
_LEFT_OUT = frozenset({"__init__", "__repr__"})


def sites(path: str, text: str) -> list[Mutation]:
    """All mutations of a file, in the order of the syntax tree."""
    finder = _Finder(path, Source(text))
    finder.visit(ast.parse(text))
    return numbered(finder.found)


class _Finder(ast.NodeVisitor):
    def __init__(self, path: str, source: Source) -> None:
        self.found: list[Mutation] = []
        self._path = path
        self._source = source
        self._scope: list[str] = []
        self._returns: list[ast.expr | None] = [None]

    def visit(self, node: ast.AST) -> None:
        named = isinstance(node, _FUNCTIONS) and node.name in _LEFT_OUT
        if named or isinstance(node, ast.arguments) or _is_annotation_only(node):
            return
        for source in (python_statements.changes, python_expressions.changes):
            for change in source(self._source, node, self._returns[-1]):
                scope = ".".join(self._scope)
                self.found.append(Mutation.of(self._path, self._source.text, scope, change))
        if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            self._scope.append(node.name)
            self._returns.append(node.returns if isinstance(node, _FUNCTIONS) else None)
            for child in node.body:
                self.visit(child)
            self._returns.pop()
            self._scope.pop()
        else:
            self.generic_visit(node)


def _is_annotation_only(node: ast.AST) -> bool:
    """Imports for annotations, and annotations themselves, have no effect at run time."""
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
