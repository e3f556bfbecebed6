"""Breaks inside SQL expressions: conditions, comparisons, order, bounds and row locks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tools.mutants.mutation import Change
from tools.mutants.sql_text import STATEMENT_STARTS, SqlText

__all__ = ["changes"]

_OFF_BY_ONE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "<>", "<>": "="}
_OPPOSITE = {"least": "greatest", "greatest": "least", "min": "max", "max": "min"}
_ORDER_ENDS = frozenset({"limit", "offset", "for", "loop", ";", "rows", "range", "union"})
_LIMIT_ENDS = frozenset({"offset", "for", "loop", ";", "union"})
_LOCK_STRENGTHS = frozenset({"update", "share", "no", "key"})
# A time never equals the bound exactly, so no test could detect `<` in place of `<=`.
_INSTANT = re.compile(
    r"(_at|now|clock|until|since|interval|deadline|_by|due|_from|time|epoch|age)\b", re.IGNORECASE
)


def changes(sql: SqlText, index: int) -> Iterator[Change]:
    """The breaks that begin at this token."""
    word = sql.word(index)
    if word == "and":
        yield from _and(sql, index)
    elif word in {"where", "on", "if", "elsif", "when"}:
        yield from _first_term(sql, index)
    if word == "where":
        yield from _only_term(sql, index)
    elif word in {"if", "elsif"}:
        yield from _guard(sql, index)
    elif word == "not":
        yield from _negation(sql, index)
    elif word == "is":
        yield from _is(sql, index)
    elif word == "order":
        yield from _order(sql, index)
    elif word in {"limit", "for"}:
        yield from _tail(sql, index)
    else:
        yield from _comparison(sql, index)


def _and(sql: SqlText, index: int) -> Iterator[Change]:
    begun = index - 1
    while begun >= 0 and sql.depth(begun) >= sql.depth(index):
        if sql.depth(begun) == sql.depth(index) and sql.word(begun) in {
            "and",
            "or",
            "between",
            ";",
        }:
            break
        begun -= 1
    if sql.word(begun) != "between":
        yield "condition", sql.span(index, sql.term_end(index)), ""


def _first_term(sql: SqlText, index: int) -> Iterator[Change]:
    end = sql.term_end(index)
    if sql.word(end) == "and" and sql.word(index - 1) != "end":
        yield "condition", (sql.tokens[index + 1].start, sql.tokens[end + 1].start), ""


def _only_term(sql: SqlText, index: int) -> Iterator[Change]:
    end = sql.term_end(index)
    if sql.word(end) not in {"and", "or"}:
        yield "condition", sql.span(index + 1, end), "true"


def _guard(sql: SqlText, index: int) -> Iterator[Change]:
    end = sql.until(index, frozenset({"then", ";"}))
    if sql.word(end) == "then" and sql.word(index - 1) != "end":
        span = sql.span(index + 1, end)
        yield "condition", span, "true"
        yield "condition", span, "false"


def _negation(sql: SqlText, index: int) -> Iterator[Change]:
    if sql.word(index - 1) != "is" and sql.word(index + 1) not in {"null", "matched", "valid"}:
        yield "comparison", (sql.tokens[index].start, sql.tokens[index + 1].start), ""


def _is(sql: SqlText, index: int) -> Iterator[Change]:
    following = sql.tokens[index + 1]
    if following.text == "not":
        yield "comparison", (following.start, sql.tokens[index + 2].start), ""
    elif following.text in {"null", "distinct", "true", "false"}:
        yield "comparison", (following.start, following.start), "not "


def _order(sql: SqlText, index: int) -> Iterator[Change]:
    if sql.word(index + 1) != "by":
        return
    end = sql.until(index, _ORDER_ENDS)
    yield "order", sql.span(index, end), ""
    key = sql.until(index, _ORDER_ENDS | {","})
    last = sql.tokens[key - 1]
    if last.text == "desc":
        yield "order", (last.start, last.end), ""
    elif last.text not in {"first", "last", "asc"}:
        yield "order", (last.end, last.end), " desc"


def _tail(sql: SqlText, index: int) -> Iterator[Change]:
    if sql.word(index) == "limit":
        if sql.word(index - 1) not in {".", ","} and not _is_first_row(sql, index):
            yield "bound", sql.span(index, sql.until(index, _LIMIT_ENDS)), ""
        return
    if sql.word(index + 1) not in _LOCK_STRENGTHS:
        return
    end = sql.until(index, frozenset({"loop", ";"}))
    yield "lock", sql.span(index, end), ""
    if [sql.word(end - 2), sql.word(end - 1)] == ["skip", "locked"]:
        yield "lock", sql.span(end - 2, end), ""


def _is_first_row(sql: SqlText, index: int) -> bool:
    """Whether this is LIMIT 1 of a SELECT INTO, which takes the first row anyway."""
    if [sql.word(index + 1), sql.word(index + 2)] != ["1", ";"]:
        return False
    depth, into = sql.depth(index), False
    for other in range(index - 1, -1, -1):
        if sql.depth(other) == depth:
            if sql.word(other) in STATEMENT_STARTS:
                break
            into = into or (sql.word(other) == "into" and sql.word(other + 1) != "strict")
    return into


def _comparison(sql: SqlText, index: int) -> Iterator[Change]:
    token = sql.tokens[index]
    span = token.start, token.end
    if token.text in _OPPOSITE and sql.word(index + 1) == "(":
        yield "bound", span, _OPPOSITE[token.text]
    if token.text not in _SWAPPED or (token.text == "=" and token.clause == "set"):
        return
    around = " ".join(sql.word(other) for other in range(index - 3, index + 4))
    if token.text in _OFF_BY_ONE and not _INSTANT.search(around):
        yield "bound", span, _OFF_BY_ONE[token.text]
    yield "comparison", span, _SWAPPED[token.text]
