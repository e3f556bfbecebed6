"""Splits SQL into tokens with their depth, without comments; function bodies count as code."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Token", "tokens", "words"]


def words(text: str) -> frozenset[str]:
    """The words of a text as a set."""
    return frozenset(text.split())


_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>[eE]?'(?:[^']|'')*')
  | (?P<dollar>\$\w*\$)
  | (?P<word>"[^"]*"|[A-Za-z_][\w]*(?:\.[A-Za-z_]\w*)*)
  | (?P<number>\d[\w.]*)
  | (?P<operator><>|!=|<=|>=|=>|:=|::|->>|->|\#>>|\#>|@>|<@|&&|\|\||\?\||\?&|<<|>>|[<>=])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
# What END closes, in addition to CASE.
_BLOCK = re.compile(r"\s+(?:if|loop)\b", re.IGNORECASE)
# The keyword that began the clause of a token, at its depth.
_CLAUSES = words(
    "select from where on having set if elsif when then else return order group values limit"
    " offset perform into using loop begin declare call returning while continue exit raise"
)


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` is lower case; ``body`` is the number of the function body, 0 outside of any."""

    kind: str
    text: str
    start: int
    end: int
    depth: int
    body: int
    clause: str


def tokens(sql: str) -> list[Token]:
    """The tokens in order. Brackets and CASE … END raise the depth of what they enclose."""
    result: list[Token] = []
    stack: list[str] = []
    clauses = [""]
    body, bodies = 0, 0
    delimiter = ""
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup or "other"
        if kind == "skip":
            continue
        text = match.group().lower() if kind in {"word", "other"} else match.group()
        ends_case = text == "end" and stack[-1:] == ["case"] and not _BLOCK.match(sql, match.end())
        closes = text in {")", "]"} or ends_case
        if closes and stack:
            stack.pop()
            clauses.pop()
        if kind == "dollar" and delimiter in {"", text}:
            delimiter = "" if delimiter else text
            bodies += bool(delimiter)
            body = bodies if delimiter else 0
            stack, clauses = [], [""]
        if text == ";":
            clauses[-1] = ""
        if kind == "word" and text in _CLAUSES:
            clauses[-1] = text
        after_end = bool(result) and result[-1].text == "end"
        result.append(Token(kind, text, *match.span(), len(stack), body, clauses[-1]))
        if text in {"(", "["} or (text == "case" and not after_end):
            stack.append(text)
            clauses.append("")
    return result
