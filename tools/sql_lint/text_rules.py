"""Rules about the text of a file: blanks, length, the first line, lower case."""

from __future__ import annotations

from pglast.parser import ParseError

from tools.sql_lint.source import SqlFile

__all__ = ["check"]

LONGEST_LINE = 140


def check(file: SqlFile) -> None:
    _lines(file)
    _first_line(file)
    _lower_case(file)


def _lines(file: SqlFile) -> None:
    if not file.text.endswith("\n") or file.text.endswith("\n\n"):
        file.report(file.text.count("\n") + 1, "a file ends with exactly one line end")
    for number, line in enumerate(file.text.splitlines(), start=1):
        if "\t" in line:
            file.report(number, "a tab; indent with two spaces")
        if line != line.rstrip():
            file.report(number, "blanks at the end of the line")
        # The first line and the comment that repeats it may be long, because sentences are not
        # wrapped.
        sentence = number == 1 or line.startswith("comment on ")
        if len(line) > LONGEST_LINE and not sentence:
            file.report(number, f"{len(line)} characters; at most {LONGEST_LINE}")


def _first_line(file: SqlFile) -> None:
    first = file.text.partition("\n")[0]
    if file.kind == "migrations":
        # These have another header, which the loader checks.
        return
    if not first.startswith("-- ") or not first.endswith((".", ":")):
        file.report(1, "the first line must describe the object in a sentence: '-- Takes … .'")


def _lower_case(file: SqlFile) -> None:
    try:
        for token, text, line in file.tokens():
            name = token.kind != "NO_KEYWORD" or token.name == "IDENT"
            if name and not text.startswith('"') and text != text.lower():
                file.report(line, f"{text} should be lower case")
    except ParseError as error:
        file.report(1, f"cannot be scanned: {error}")
