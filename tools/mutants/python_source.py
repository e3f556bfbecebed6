"""The text of a Python file with the positions of syntax nodes as offsets."""

from __future__ import annotations

import ast
from itertools import accumulate

from tools.mutants.mutation import Span

__all__ = ["Source"]


class Source:
    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = text.splitlines(keepends=True)
        self._starts = [0, *accumulate(len(line) for line in self._lines)]

    def span(self, node: ast.expr | ast.stmt) -> Span:
        assert node.end_lineno is not None and node.end_col_offset is not None  # noqa: PT018, S101
        start = self._offset(node.lineno, node.col_offset)
        return start, self._offset(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def _offset(self, line: int, column: int) -> int:
        # Columns count UTF-8 bytes.
        before = self._lines[line - 1].encode()[:column].decode()
        return self._starts[line - 1] + len(before)
