"""Rules about bodies and queries: names of variables, qualified names, no execute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pglast import ast, parse_plpgsql, parse_sql
from pglast.parser import ParseError
from pglast.visitors import Skip, Visitor

from tools.sql_lint.object_rules import has_search_path
from tools.sql_lint.source import Body, SqlFile

__all__ = ["check"]

_OURS = {"trunkline", "trunkline_internal"}
# Names of partitions contain a day, roles cannot be parameters, and a duty's function is data.
DYNAMIC = {
    "duties/internal/call_duty.sql",
    "duties/internal/drop_expired_partition.sql",
    "duties/internal/keep_events.sql",
    "duties/internal/make_partition.sql",
    "duties/internal/make_partitions.sql",
    "duties/internal/rescue_steps.sql",
    "security/grants.sql",
    "security/roles.sql",
}
# The only source of random numbers; tests replace it.
DRAW = "queue/internal/draw.sql"
_EXECUTES = {"PLpgSQL_stmt_dynexecute", "PLpgSQL_stmt_dynfors", "dynquery"}
# libpg_query knows only system types, so ours are replaced by types that parse the same way.
_DECLARE = re.compile(r"(?ms)^declare$.*?^begin$")
_OUR_TYPE = re.compile(r"\btrunkline(?:_internal)?\.\w+(?:%rowtype)?(\[\])?")
_STATEMENT = 0
_EXPRESSION = 2


@dataclass(frozen=True, slots=True)
class _Query:
    text: str
    mode: int
    line: int


def check(file: SqlFile) -> None:
    """Check every statement of the file and of its bodies."""
    for raw in file.statements:
        line = file.line_at(raw.stmt_location)
        if isinstance(raw.stmt, ast.CreateFunctionStmt):
            continue
        _Names(file, line, pinned=True)(raw.stmt)
    made = [raw.stmt for raw in file.statements if isinstance(raw.stmt, ast.CreateFunctionStmt)]
    for source, body in file.bodies():
        language = _language(made[0]) if made else "plpgsql"
        pinned = not made or has_search_path(made[0])
        if language == "sql":
            _query(file, _Query(body.text, _STATEMENT, body.line), pinned=pinned)
        elif language == "plpgsql":
            _procedure(file, source, body, pinned=pinned)


def _language(made: Any) -> str:
    return next((str(o.arg.sval) for o in made.options if o.defname == "language"), "sql")


def _procedure(file: SqlFile, source: str, body: Body, *, pinned: bool) -> None:
    try:
        (tree,) = parse_plpgsql(_neutral(source))
    except ParseError as error:
        file.report(body.line, f"not valid PL/pgSQL: {error.args[0]}")
        return
    function = tree["PLpgSQL_function"]
    for datum in function["datums"]:
        _variable(file, datum, body.line)
    for query in _walk(file, [function["datums"], function["action"]], body.line, body.line):
        _query(file, query, pinned=pinned)


def _neutral(source: str) -> str:
    """The same lines, with types that libpg_query knows."""
    head, quote, body = source.partition("$")

    def local(found: re.Match[str]) -> str:
        return "jsonb[]" if found[1] else "record"

    head = head[:40] + _OUR_TYPE.sub(lambda found: f"jsonb{found[1] or ''}", head[40:])
    body = _DECLARE.sub(lambda block: _declared(block[0], local), body)
    return head + quote + body


def _declared(block: str, local: Any) -> str:
    # Replaces only the type; the expression after := stays.
    lines = []
    for line in block.split("\n"):
        declared, assign, value = line.partition(":=")
        lines.append(_OUR_TYPE.sub(local, declared) + assign + value)
    return "\n".join(lines)


def _variable(file: SqlFile, datum: dict[str, Any], start: int) -> None:
    ((kind, found),) = datum.items()
    if kind not in {"PLpgSQL_var", "PLpgSQL_rec"} or "lineno" not in found:
        return
    name = found["refname"]
    # PL/pgSQL creates a hidden variable for each CASE statement.
    if name in {"sqlstate", "sqlerrm"} or name.startswith("__Case"):
        return
    wanted = "c_" if found.get("isconst") else "v_"
    if not name.startswith(wanted):
        what = "constant" if wanted == "c_" else "variable"
        file.report(start + found["lineno"] - 1, f"{what} {name} should begin with {wanted}")


def _walk(file: SqlFile, node: Any, start: int, line: int) -> Iterator[_Query]:
    if isinstance(node, list):
        for part in node:
            yield from _walk(file, part, start, line)
    elif isinstance(node, dict):
        line = start + node["lineno"] - 1 if "lineno" in node else line
        for name, part in node.items():
            if name in _EXECUTES and file.path not in DYNAMIC:
                at = start + part.get("lineno", line - start + 1) - 1
                file.report(at, "execute; dynamic SQL is for partitions, roles and duties only")
            if name == "PLpgSQL_expr":
                yield _Query(part["query"], part["parseMode"], line)
            else:
                yield from _walk(file, part, start, line)


def _query(file: SqlFile, query: _Query, *, pinned: bool) -> None:
    text = query.text
    if query.mode > _EXPRESSION:
        text = text[re.search(r":?=", text).end() :]  # type: ignore[union-attr]
    if query.mode != _STATEMENT:
        text = f"select {text}"
    try:
        statements = parse_sql(text)
    except ParseError as error:
        file.report(query.line, f"not valid SQL: {error.args[0]}")
        return
    names = _Names(file, query.line, pinned=pinned)
    for raw in statements:
        names(raw.stmt)


class _Names(Visitor):
    """Every relation is qualified, and so is every function if the path is not pinned."""

    def __init__(self, file: SqlFile, line: int, *, pinned: bool) -> None:
        super().__init__()
        self.file = file
        self.line = line
        self.pinned = pinned
        self.known: set[str] = set()

    def __call__(self, node: Any) -> None:
        self.known = _with_names(node)
        super().__call__(node)

    def visit_LockingClause(self, ancestors: Any, node: Any) -> Any:  # noqa: ARG002, N802
        # FOR UPDATE OF names aliases.
        return Skip

    def visit_RangeVar(self, ancestors: Any, node: Any) -> None:  # noqa: ARG002, N802
        if not node.schemaname and node.relname not in self.known:
            self.file.report(self.line, f"relation {node.relname} is not qualified with its schema")

    def visit_FuncCall(self, ancestors: Any, node: Any) -> None:  # noqa: ARG002, N802
        names = [part.sval for part in node.funcname]
        arguments = node.args or ()
        if names[-1] == "random" and self.file.path != DRAW:
            self.file.report(self.line, "random(); draw with trunkline_internal.draw()")
        if names[0] in _OURS:
            if not all(isinstance(argument, ast.NamedArgExpr) for argument in arguments):
                self.file.report(self.line, f"{names[-1]} is called without p_… => notation")
        elif len(names) == 1 and not self.pinned and not _special(names[0], len(arguments)):
            self.file.report(
                self.line, f"{names[0]} is not qualified, and this function does not pin the path"
            )


def _special(name: str, arguments: int) -> bool:
    # The parser handles unnest of several arrays itself, but only if it is not qualified.
    return name == "unnest" and arguments > 1


def _with_names(node: Any) -> set[str]:
    found: set[str] = set()

    class Collector(Visitor):
        def visit_CommonTableExpr(self, ancestors: Any, node: Any) -> None:  # noqa: ARG002, N802
            found.add(node.ctename)

    Collector()(node)
    return found
