"""Breaks of whole PL/pgSQL statements: dropped, or a constant result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.mutants.mutation import Change
from tools.mutants.sql_text import STATEMENT_STARTS, SqlText

__all__ = ["changes"]

_END = frozenset({";"})
_WRITES = frozenset({"insert", "update", "delete", "merge", "execute", "with"})
_QUIET = frozenset({"debug", "log", "info", "notice", "warning"})
# The kind of a dropped call, by its name.
_CALLS = (
    ("wake-up", re.compile(r"wake|notify")),
    ("lock", re.compile(r"advisory|lock_")),
    ("refusal", re.compile(r"refuse|\.check_|\.require_|guard")),
)


def changes(sql: SqlText, index: int) -> Iterator[Change]:
    """The breaks of the statement that begins at this token."""
    token = sql.tokens[index]
    starts = sql.word(index - 1) in STATEMENT_STARTS and token.body in sql.procedural
    if not starts or token.text == ";":
        return
    end = sql.until(index, _END)
    if sql.word(end) != ";" or sql.depth(end) != token.depth:
        return
    span = (token.start, sql.tokens[end].end)
    if token.text == "return":
        yield from _return(sql, index, end)
    elif token.text == "continue":
        yield "condition", span, "null;"
    elif kind := _dropped(sql, index, end):
        yield kind, span, "null;"


def _dropped(sql: SqlText, index: int, end: int) -> str | None:
    word = sql.word(index)
    if word == "raise":
        return None if sql.word(index + 1) in _QUIET else "refusal"
    if word == "perform":
        call = sql.text[slice(*sql.span(index, end))].lower()
        return next((kind for kind, pattern in _CALLS if pattern.search(call)), "statement")
    element = sql.word(index + 1) == "[" and sql.word(index + 4) == ":="
    if word in _WRITES or sql.word(index + 1) == ":=" or element:
        return "statement"
    return None


def _return(sql: SqlText, index: int, end: int) -> Iterator[Change]:
    span = (sql.tokens[index].start, sql.tokens[end].end)
    if end == index + 1:
        yield "condition", span, "null;"
    elif sql.word(index + 1) in {"next", "query"}:
        yield "result", span, "null;"
    else:
        constants = ["true", "false"] if _boolean(sql, index) else ["null"]
        for constant in constants:
            yield "result", span, f"return {constant};"


def _boolean(sql: SqlText, index: int) -> bool:
    while index >= 0 and sql.word(index) != "returns":
        index -= 1
    return sql.word(index + 1) == "boolean"
