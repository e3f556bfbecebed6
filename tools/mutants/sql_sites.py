"""Finds the places in a SQL file where a small break is possible."""

from __future__ import annotations

from tools.mutants import sql_clauses, sql_statements
from tools.mutants.mutation import Mutation, numbered
from tools.mutants.sql_text import SqlText

__all__ = ["sites"]


def sites(path: str, text: str) -> list[Mutation]:
    """All mutations of a file, in the order of their places."""
    sql = SqlText(text)
    return numbered(
        Mutation.of(path, text, sql.scope(token.start), change)
        for index, token in sql.live()
        for source in (sql_statements.changes, sql_clauses.changes)
        for change in source(sql, index)
    )
