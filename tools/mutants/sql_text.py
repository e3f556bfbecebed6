"""A SQL file as tokens, with helpers for the searches for places."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property

from tools.mutants.mutation import Span
from tools.mutants.sql_tokens import Token, tokens, words

__all__ = ["STATEMENT_STARTS", "SqlText"]

# A PL/pgSQL statement begins after one of these.
STATEMENT_STARTS = frozenset({";", "then", "else", "loop", "begin"})
_TERM_ENDS = words(
    "and or then ; group order limit offset for loop having window union except intersect"
    " returning on join cross inner full do when else , as where"
)
_OBJECT = re.compile(
    r"^\s*create\s+(?:or\s+replace\s+)?(?:function|procedure|view|trigger)\s+([\w.]+)",
    re.IGNORECASE | re.MULTILINE,
)


class SqlText:
    """The text of a file, its tokens, and which of them belong to code that runs."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        objects = list(_OBJECT.finditer(text))
        self._starts = [match.start() for match in objects]
        self._names = [match[1] for match in objects]

    def live(self) -> Iterator[tuple[int, Token]]:
        """Tokens of function bodies and of views; a file without CREATE is one query."""
        query = all(token.text != "create" for token in self.tokens)
        in_view = False
        for index, token in enumerate(self.tokens):
            if token.body == 0 and token.text == "view":
                in_view = self._previous(index, "create", "replace")
            elif token.text == ";" and token.body == 0:
                in_view = False
            elif query or token.body or (in_view and self._behind_as(index)):
                yield index, token

    @cached_property
    def procedural(self) -> frozenset[int]:
        """Bodies in PL/pgSQL, which have a BEGIN."""
        return frozenset(
            token.body for token in self.tokens if token.text == "begin" and token.body
        )

    def scope(self, position: int) -> str:
        """The function or view around a position."""
        index = bisect_right(self._starts, position) - 1
        return self._names[index] if index >= 0 else ""

    def word(self, index: int) -> str:
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def until(self, index: int, ends: frozenset[str]) -> int:
        """The first token after this one that ends its clause or leaves its brackets."""
        depth = self.tokens[index].depth
        for other in range(index + 1, len(self.tokens)):
            token = self.tokens[other]
            if token.depth < depth or token.kind == "dollar":
                return other
            if token.depth == depth and token.text in ends:
                return other
        return len(self.tokens)

    def term_end(self, index: int) -> int:
        """The end of the condition that begins after this token; BETWEEN keeps its AND."""
        end = index
        while True:
            begun = end
            end = self.until(end, _TERM_ENDS)
            between = any(
                self.word(other) == "between" and self.tokens[other].depth == self.depth(index)
                for other in range(begun + 1, end)
            )
            if not between or self.word(end) != "and":
                return end

    def depth(self, index: int) -> int:
        return self.tokens[index].depth

    def span(self, first: int, behind: int) -> Span:
        """From the start of a token to the end of the one before ``behind``."""
        return self.tokens[first].start, self.tokens[behind - 1].end

    def _previous(self, index: int, *words: str) -> bool:
        return self.word(index - 1) in words

    def _behind_as(self, index: int) -> bool:
        other = index
        while other >= 0 and self.word(other) != "view":
            if self.word(other) == "as" and self.tokens[other].depth == 0:
                return True
            other -= 1
        return False
