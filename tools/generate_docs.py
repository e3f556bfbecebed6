"""Generates parts of READMEs: the register, the transitions and the example of the first screen.

Only the text between `<!-- generated: name -->` and `<!-- end: name -->` is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pglast import ast, parse_sql

from tools.markdown import fence
from trunkline import sql
from trunkline.errors import SQLSTATES

__all__ = ["diagram", "generate", "inserted", "refusals", "transitions"]

_README = Path(__file__).parents[1] / "src" / "trunkline" / "sql" / "README.md"
_FIRST_SCREEN = Path(__file__).parents[1] / "README.md"
_EXAMPLE = Path(__file__).parents[1] / "examples" / "quickstart.py"
_REGISTER = "security/internal/refusals.sql"


def generate() -> dict[Path, str]:
    """Return the file and the text it should have."""
    text = _README.read_text(encoding="utf-8")
    text = _between(text, "register", _register_table())
    text = _between(text, "transitions", diagram())
    first = _FIRST_SCREEN.read_text(encoding="utf-8")
    first = _between(first, "quickstart", fence(_EXAMPLE.read_text(encoding="utf-8"), "python"))
    return {_README: text, _FIRST_SCREEN: first}


def refusals() -> list[tuple[str, str, str, str]]:
    """Return code, name, message and hint of every refusal, from the register function."""
    source = next(one.text for one in sql.repeatables() if one.path == _REGISTER)
    function: Any = parse_sql(source)[0].stmt
    body = next(option.arg[0].sval for option in function.options if option.defname == "as")
    (values,) = parse_sql(body)
    return [(row[0] or "", row[1] or "", row[2] or "", row[3] or "") for row in _rows(values.stmt)]


def transitions() -> list[tuple[str, str, str]]:
    """Return from, to and functions of every legal transition, as the migrations insert them."""
    found = inserted("job_transitions")
    return [(row["from_state"], row["to_state"], row["by_function"]) for row in found]


def inserted(table: str) -> list[dict[str, str]]:
    """Return the rows that the migrations insert into a table, without null columns."""
    found: list[dict[str, str]] = []
    for migration in sql.migrations():
        for raw in parse_sql(migration.text):
            statement: Any = raw.stmt
            relation = getattr(statement, "relation", None)
            if relation is None or relation.relname != table:
                continue
            if isinstance(statement, ast.InsertStmt):
                columns = [column.name for column in statement.cols or ()]
                for row in _rows(statement.selectStmt):
                    named = zip(columns, row, strict=True)
                    found.append({name: value for name, value in named if value is not None})
            elif isinstance(statement, ast.DeleteStmt):
                gone = _equalities(statement.whereClause)
                found = [row for row in found if not gone.items() <= row.items()]
            elif isinstance(statement, ast.UpdateStmt):
                raise NotImplementedError(
                    f"{migration.label} changes {table} in a way that this tool does not support"
                )
    return found


def _equalities(clause: Any) -> dict[str, str]:
    """Return the columns and texts of a condition such as a = 'x' and b = 'y'."""
    terms: Any = clause.args if isinstance(clause, ast.BoolExpr) else [clause]
    return {term.lexpr.fields[-1].sval: term.rexpr.val.sval for term in terms}


def _rows(select: Any) -> Iterator[list[str | None]]:
    for row in select.valuesLists:
        yield [None if constant.isnull else _text(constant.val) for constant in row]


def _text(value: Any) -> str:
    if isinstance(value, ast.Boolean):
        return str(value.boolval).lower()
    return str(value.ival if isinstance(value, ast.Integer) else value.sval)


def _register_table() -> str:
    lines = [
        "| Code | Name | Message | What to do | Passes by itself | Python class | HTTP |",
        "|---|---|---|---|---|---|---|",
    ]
    for code, name, message, hint in refusals():
        found = SQLSTATES.get(code)
        if found is None:
            raise LookupError(
                f"{code} {name} is in {_REGISTER} and has no class in trunkline.errors"
            )
        passes = "yes" if found.retryable else "no"
        lines.append(
            f"| {code} | `{name}` | {message} | {_escaped(hint)} | {passes} "
            f"| `{found.__name__}` | {found.http_status} |"
        )
    return "\n".join(lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def diagram() -> str:
    """Return the legal transitions as a Mermaid diagram."""
    by: dict[tuple[str, str], list[str]] = {}
    for source, target, function in transitions():
        by.setdefault((source, target), []).append(function)
    lines = ["```mermaid", "stateDiagram-v2"]
    for (source, target), functions in by.items():
        start = "[*]" if source == "none" else source
        end = "[*]" if target == "none" else target
        lines.append(f"  {start} --> {end}: {', '.join(functions)}")
    return "\n".join([*lines, "```"])


def _between(text: str, name: str, content: str) -> str:
    start, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise LookupError(f"a README should have one {start} … {end}")
    return pattern.sub(lambda _: f"{start}\n{content}\n{end}", text)
