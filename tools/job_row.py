"""Reads the fields of a job from sql/job_row.toml and compares them with the migrations."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pglast import enums, parse_sql
from pglast.stream import RawStream

from trunkline import sql

__all__ = [
    "DEFINITION",
    "SHAPES",
    "TABLES",
    "Field",
    "JobRow",
    "differences",
    "read",
    "request_fields",
]

DEFINITION = Path(__file__).parents[1] / "src" / "trunkline" / "sql" / "job_row.toml"
TABLES = ("waiting", "running", "finished", "dead")
# Types that migrations create.
_TYPES = ("listed_job", "job_detail", "claimed_job", "costly_attempt")
SHAPES = ("jobs", *_TYPES)
_ALIASES = {"timestamp with time zone": "timestamptz"}
_UNREADABLE = {
    enums.AlterTableType.AT_DropColumn,
    enums.AlterTableType.AT_AlterColumnType,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a job; job_row.toml explains the attributes."""

    name: str
    type: str
    shown_as: str = ""
    tables: tuple[str, ...] = ()
    computed: Mapping[str, str] = field(default_factory=dict)
    moves: bool = True
    request: bool = False
    shown: tuple[str, ...] = ()
    attribute: str = ""
    python: str = ""

    @property
    def shown_type(self) -> str:
        """The type in views and results."""
        return self.shown_as or self.type

    def stored(self, table: str, alias: str) -> str | None:
        """Return the value that a row of a table has for the field; None if it has none.

        The arguments of enqueue are a row of the table "request"; the alias p_ is their prefix.
        """
        if table == "request":
            dot = "" if alias.endswith("_") else "."
            return f"{alias}{dot}{self.name}" if self.request else None
        if table in self.tables:
            return f"{alias}.{self.name}"
        expression = self.computed.get(table)
        return None if expression is None else expression.replace("{job}", alias)


@dataclass(frozen=True, slots=True)
class JobRow:
    """All fields in the order of the file, orders of shapes that differ from it, and selections."""

    fields: tuple[Field, ...]
    order: Mapping[str, tuple[str, ...]]
    # Fields that several places of a statement need, by the name of the selection.
    selections: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_table(self, table: str) -> list[Field]:
        """Return the columns of a table."""
        return [one for one in self.fields if table in one.tables]

    def of_shape(self, shape: str) -> list[Field]:
        """Return the columns of a view, type or selection in their order."""
        if shape == "all_jobs":
            # All columns of the tables that jobs and job_detail read, including the days of large
            # bodies.
            days = {"payload_day", "result_day"}
            return [
                one
                for one in self.fields
                if one.name in days or (one.tables and {"jobs", "job_detail"} & set(one.shown))
            ]
        if shape == "request":
            return [one for one in self.fields if one.request]
        if shape in self.selections:
            every = {one.name: one for one in self.fields}
            return [every[name] for name in self.selections[shape]]
        if shape not in SHAPES:
            raise LookupError(f"{shape} is not one of {', '.join(SHAPES)}")
        first = self.order.get(shape, ())
        named = {one.name: one for one in self.fields if shape in one.shown}
        return [named.pop(name) for name in first] + list(named.values())


def read(path: Path = DEFINITION) -> JobRow:
    """Return the definition."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    fields = tuple(_field(name, values) for name, values in document["fields"].items())
    order = {shape: tuple(names) for shape, names in document["order"].items()}
    selections = {name: tuple(names) for name, names in document["selections"].items()}
    return JobRow(fields, order, selections)


def _field(name: str, values: Mapping[str, Any]) -> Field:
    lists = {key: tuple(values[key]) for key in ("tables", "shown") if key in values}
    found = Field(name=name, **{**values, **lists})
    unknown = {*found.tables, *found.computed} - {*TABLES} | {*found.shown} - {*SHAPES}
    if unknown:
        raise LookupError(f"job_row.toml: {name} names {', '.join(sorted(unknown))}")
    return found


def differences(row: JobRow) -> list[str]:
    """Return the differences between the migrations and the definition."""
    found = _migrated()
    lines = []
    for table in TABLES:
        wanted = {(one.name, one.type) for one in row.of_table(table)}
        lines += [
            f"{table}.{name} {kind} is only in {where}"
            for names, where in (
                (wanted - {*found[table]}, "job_row.toml"),
                ({*found[table]} - wanted, "the migrations"),
            )
            for name, kind in sorted(names)
        ]
    for shape in _TYPES:
        columns = [(one.name, one.shown_type) for one in row.of_shape(shape)]
        if columns != found[shape]:
            lines.append(f"type {shape} has the columns {found[shape]}, job_row.toml {columns}")
    return lines


def request_fields() -> list[str]:
    """Return the names of the fields of a request, in the order of the type."""
    return [name for name, _ in _migrated()["request"]]


def _migrated() -> dict[str, list[tuple[str, str]]]:
    """Return name and type of every column of the job tables and types after all migrations."""
    found: dict[str, list[tuple[str, str]]] = {}
    for migration in sql.migrations():
        for raw in parse_sql(migration.text):
            statement: Any = raw.stmt
            kind = type(statement).__name__
            if kind == "CreateStmt" and statement.relation.relname in TABLES:
                found[statement.relation.relname] = list(_columns(statement.tableElts))
            elif kind == "CompositeTypeStmt" and statement.typevar.relname in {*_TYPES, "request"}:
                found[statement.typevar.relname] = list(_columns(statement.coldeflist))
            elif kind == "AlterTableStmt" and statement.relation.relname in found:
                for command in statement.cmds:
                    _alter(found[statement.relation.relname], command)
    return found


def _alter(columns: list[tuple[str, str]], command: Any) -> None:
    if command.subtype == enums.AlterTableType.AT_AddColumn:
        columns += _columns([command.def_])
    elif command.subtype in _UNREADABLE:
        raise NotImplementedError(f"a migration has an unsupported change of {command.name}")


def _columns(elements: Any) -> Iterator[tuple[str, str]]:
    for element in elements:
        if type(element).__name__ == "ColumnDef":
            name = RawStream()(element.typeName)
            yield element.colname, _ALIASES.get(name, name)
