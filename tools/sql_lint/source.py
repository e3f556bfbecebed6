"""A SQL file with its parse tree and its findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pglast import ast, parse_sql
from pglast.parser import ParseError, Token, scan

__all__ = ["Body", "Finding", "Kind", "SqlFile", "read"]

Kind = str


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation of one rule."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a function or of a DO block, and the line of the file it starts in."""

    text: str
    line: int


@dataclass(slots=True)
class SqlFile:
    """One file; ``kind`` is the name of its folder: migrations, internal, api, views, security."""

    path: str
    text: str
    statements: tuple[Any, ...] = ()
    findings: list[Finding] = field(default_factory=list)

    @property
    def kind(self) -> Kind:
        folders = PurePosixPath(self.path).parent
        return folders.parts[0] if folders.parts[:1] == ("migrations",) else folders.name

    @property
    def stem(self) -> str:
        return PurePosixPath(self.path).stem

    @property
    def repeatable(self) -> bool:
        """Whether the file contains one function or view and nothing else."""
        return self.kind in {"internal", "api", "views"}

    def report(self, line: int, message: str) -> None:
        self.findings.append(Finding(self.path, line, message))

    def line_at(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def tokens(self) -> Iterator[tuple[Token, str, int]]:
        """Every token with its text and line, including those in dollar-quoted bodies."""
        yield from _tokens(self.text, 1)

    def bodies(self) -> Iterator[tuple[str, Body]]:
        """The complete source of each function and DO block, and its body."""
        for raw in self.statements:
            if isinstance(raw.stmt, ast.CreateFunctionStmt | ast.DoStmt):
                start = raw.stmt_location
                end = start + raw.stmt_len if raw.stmt_len else len(self.text)
                source = self.text[start:end]
                for token in scan(source):
                    quoted = source[token.start : token.end + 1]
                    if token.name == "SCONST" and quoted.startswith("$"):
                        text = _unquoted(quoted)
                        line = self.line_at(start + token.start)
                        yield source, Body(text, line)


def read(path: str, text: str) -> SqlFile:
    """Parse a file; a syntax error is its only finding."""
    file = SqlFile(path, text)
    try:
        file.statements = tuple(parse_sql(text))
    except ParseError as error:
        message, offset = (*error.args, 0)[:2]
        file.report(file.line_at(offset or 0), f"not valid SQL: {message}")
    return file


def _tokens(text: str, line: int) -> Iterator[tuple[Token, str, int]]:
    for token in scan(text):
        found = text[token.start : token.end + 1]
        at = line + text.count("\n", 0, token.start)
        yield token, found, at
        if token.name == "SCONST" and found.startswith("$"):
            yield from _tokens(_unquoted(found), at)


def _unquoted(text: str) -> str:
    tag = text[: text.index("$", 1) + 1]
    return text.removeprefix(tag).removesuffix(tag)
