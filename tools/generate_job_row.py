"""Generates all lists of a job's fields: regions of SQL files, the class Job, Python's columns.

A region is between two comments. The first one specifies its content:

    -- <job columns: running to dead>       columns of an INSERT that a move copies
    -- <job values: g>                      the values for them, from the row g
    -- <job shape: listed_job of w in waiting>
                                            columns of a view, type or selection, from a row of
                                            a table
    -- <job shape: jobs of j after result until tags>
                                            a part of them, from a row with the same columns
    -- <job read: r as e in running>        columns of a row r that the file reads as e.name
    -- <job arguments: v_job without payload>
                                            the arguments of enqueue, from a row of type request
    -- </job>

Columns that the INSERT names before the region are not copied: columns that change in a move are
written by hand, before the region.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.job_row import Field, JobRow, differences, read, request_fields

__all__ = ["REGION", "filled", "generate"]

_PACKAGE = Path(__file__).parents[1] / "src" / "trunkline"
_ENGINE = _PACKAGE / "sql"
_MODELS = (_PACKAGE / "model" / "job.py", _PACKAGE / "model" / "request.py")
_COLUMNS = _PACKAGE / "db" / "calls" / "job_columns.py"

REGION = re.compile(
    r"^(?P<indent> *)(?P<comment>--|#) <job (?P<kind>\w+)(?:: (?P<what>[^>\n]*))?>\n"
    r"(?P<body>.*?)"
    r"^ *(?P=comment) </job>\n",
    re.MULTILINE | re.DOTALL,
)
_COPY = re.compile(r"(?P<source>\w+) to (?P<target>\w+)")
_SHAPE = re.compile(
    r"(?P<shape>\w+) of (?P<alias>\w+)(?: in (?P<table>\w+))?"
    r"(?: after (?P<after>\w+))?(?: until (?P<until>\w+))?"
)
_READ = re.compile(r"(?P<alias>\w+) as (?P<reader>\w+) in (?P<table>\w+)")
_WIDTH = 126
_PYTHON_TYPES = {
    "date": "date",
    "integer": "int",
    "jsonb": "Mapping[str, Any]",
    "text": "str",
    "timestamptz": "datetime",
    "uuid": "UUID",
}


def generate() -> dict[Path, str]:
    """Return the files and the text they should have."""
    row = read()
    wrong = differences(row)
    if wrong:
        raise LookupError("job_row.toml and the migrations differ:\n" + "\n".join(wrong))
    texts = {}
    for path in sorted(_ENGINE.glob("*/*/*.sql")):
        if path.parent.parent.name != "migrations":
            text = path.read_text(encoding="utf-8")
            if "<job " in text:
                # A second time for what a region reads of the regions after it.
                texts[path] = filled(filled(text, row, path.name), row, path.name)
    for path in _MODELS:
        texts[path] = filled(path.read_text(encoding="utf-8"), row, path.name)
    texts[_COLUMNS] = _columns_module(row)
    return texts


def filled(text: str, row: JobRow, name: str) -> str:
    """Return the text with every region regenerated."""
    copied: tuple[list[Field], str] | None = None
    parts = []
    end = 0
    for region in REGION.finditer(text):
        before = text[end : region.start()]
        what = region["what"] or ""
        if region["kind"] == "columns":
            copied = _copied(row, what, _insert_columns(text[: region.start()]))
            items = [one.name for one in copied[0]]
        elif region["kind"] == "values" and copied is not None:
            items = [str(one.stored(copied[1], what)) for one in copied[0]]
            copied = None
        elif region["kind"] == "shape":
            items = list(_shape_items(row, what))
        elif region["kind"] == "read":
            items = list(_read(row, what, text))
        elif region["kind"] == "arguments":
            items = list(_arguments(what))
        elif region["kind"] == "request":
            items = [f'"{name}",' for name in request_fields()]
        elif region["kind"] == "model":
            items = [_declaration(one) for one in row.of_shape("job_detail")]
        else:
            raise LookupError(f"{name}: unknown region <job {region['kind']}>")
        python = region["comment"] == "#"
        after = text[region.end() :]
        body = _lines(items, region["indent"]) if python else _list(items, region, before, after)
        opening, closing = region[0].split("\n", 1)[0], region[0].splitlines()[-1]
        parts += [before, opening, "\n", body, closing, "\n"]
        end = region.end()
    if text.count("<job ") != len(REGION.findall(text)):
        raise LookupError(f"{name} has a region without an end")
    return "".join([*parts, text[end:]])


def _copied(row: JobRow, what: str, written: Iterable[str]) -> tuple[list[Field], str]:
    """Return the fields that a move copies, and the table it copies from."""
    named = _COPY.fullmatch(what)
    if named is None:
        raise LookupError(f"<job columns: {what}> should be <job columns: table to table>")
    source, target = named["source"], named["target"]
    by_hand = set(written)
    return [
        one
        for one in row.of_table(target)
        if one.moves and one.name not in by_hand and one.stored(source, "") is not None
    ], source


def _insert_columns(before: str) -> list[str]:
    """Return the columns that the last INSERT names before its region."""
    return re.findall(r"\w+", re.sub(r"--.*", "", before[before.rindex("(") + 1 :]))


def _read(row: JobRow, what: str, text: str) -> Iterator[str]:
    named = _READ.fullmatch(what)
    if named is None:
        raise LookupError(f"<job read: {what}> should be <job read: row as row in table>")
    names = set(re.findall(rf"\b{named['reader']}\.(\w+)", text))
    for one in row.of_table(named["table"]):
        if one.name in names:
            yield f"{named['alias']}.{one.name}"


def _arguments(what: str) -> Iterator[str]:
    alias, _, without = what.partition(" without ")
    for name in request_fields():
        if name not in without.split():
            yield f"p_{name} => {alias}.{name}"


def _shape_items(row: JobRow, what: str) -> Iterator[str]:
    named = _SHAPE.fullmatch(what)
    if named is None:
        raise LookupError(f"<job shape: {what}> has invalid syntax")
    fields = row.of_shape(named["shape"])
    names = [one.name for one in fields]
    first = names.index(named["after"]) + 1 if named["after"] else 0
    last = names.index(named["until"]) + 1 if named["until"] else len(names)
    for one in fields[first:last]:
        item = _shown(one, named["alias"], named["table"])
        plain = item == f"{named['alias']}.{one.name}"
        yield f"{item} as {one.name}" if named["shape"] == "all_jobs" and not plain else item


def _shown(one: Field, alias: str, table: str | None) -> str:
    """Return the field's expression in a result, from a row of a table or of a full view."""
    if table is None:
        return f"{alias}.{one.name}"
    value = one.stored(table, alias)
    if value is None:
        return f"null::{one.shown_type}"
    is_column = re.fullmatch(r"\w+\.\w+", value) is not None
    if is_column and one.shown_type == one.type:
        return value
    is_simple = is_column or value.startswith("'")
    return f"{value if is_simple else f'({value})'}::{one.shown_type}"


def _list(items: Sequence[str], region: re.Match[str], before: str, after: str) -> str:
    """Return the items of an SQL list, with a comma if other items precede or follow."""
    if not items:
        return ""
    follows = re.match(r"\s*(--[^\n]*\n\s*)*", after)
    rest = after[follows.end() if follows else 0 :]
    comma = "" if re.match(r"\)|from\b|;", rest) else ","
    lead = "" if re.search(r"(,|\(|\bselect|\breturning)\s*$", before) else ", "
    text = ", ".join(item.replace(" ", "\0") for item in items)
    wrapped = textwrap.wrap(
        lead + text + comma,
        width=_WIDTH,
        initial_indent=region["indent"],
        subsequent_indent=region["indent"],
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "".join(line.replace("\0", " ") + "\n" for line in wrapped)


def _lines(items: Iterable[str], indent: str) -> str:
    return "".join(f"{indent}{item}\n" for item in items)


def _declaration(one: Field) -> str:
    kind = one.python or f"{_PYTHON_TYPES[one.shown_type]} | None = None"
    return f"{one.attribute or one.name}: {kind}"


def _columns_module(row: JobRow) -> str:
    return (
        '"""The columns of a job in results, generated from sql/job_row.toml by make generate."""\n'
        "\n"
        "from typing import Final, LiteralString\n"
        "\n"
        '__all__ = ["DETAIL", "LISTED"]\n'
        "\n"
        + _constant("LISTED", row.of_shape("listed_job"))
        + _constant("DETAIL", row.of_shape("job_detail"))
    )


def _constant(name: str, fields: Sequence[Field]) -> str:
    lines = textwrap.wrap(", ".join(one.name for one in fields), width=92)
    quoted = [f'    "{line} "' for line in lines[:-1]] + [f'    "{lines[-1]}"']
    return f"{name}: Final[LiteralString] = (\n" + "\n".join(quoted) + "\n)\n"
