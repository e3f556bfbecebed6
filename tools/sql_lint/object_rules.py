"""Rules about the one object of a repeatable file, and its comment."""

from __future__ import annotations

from typing import Any

from pglast import ast
from pglast.enums import FunctionParameterMode, ObjectType

from tools.sql_lint.source import SqlFile

__all__ = ["check", "has_search_path"]

_SCHEMA = {"api": "trunkline", "internal": "trunkline_internal"}
_PATH = ("pg_catalog", "pg_temp")
_INPUT = {
    FunctionParameterMode.FUNC_PARAM_IN,
    FunctionParameterMode.FUNC_PARAM_INOUT,
    FunctionParameterMode.FUNC_PARAM_VARIADIC,
    FunctionParameterMode.FUNC_PARAM_DEFAULT,
}
# Reads no tables, and must be inlined into the views that call it.
INVOKERS = {"api/clock"}


def check(file: SqlFile) -> None:
    if not file.repeatable or not file.statements:
        return
    made = file.statements[0].stmt
    if isinstance(made, ast.CreateFunctionStmt):
        _function(file, made)
        _commented(file, ObjectType.OBJECT_FUNCTION)
    elif isinstance(made, ast.ViewStmt):
        _view(file, made)
        _commented(file, ObjectType.OBJECT_VIEW)
    else:
        file.report(1, "does not begin with create or replace function or create or replace view")


def _named(file: SqlFile, name: list[str], *, replace: bool) -> None:
    line = file.line_at(file.statements[0].stmt_location)
    schema = ".".join(name[:-1])
    if name[-1] != file.stem:
        file.report(line, f"{name[-1]} is in a file named {file.stem}.sql")
    wanted = _SCHEMA.get(file.kind, schema)
    if schema != wanted or schema not in _SCHEMA.values():
        file.report(line, f"{name[-1]} belongs in schema {wanted}, according to its folder")
    if not replace:
        file.report(line, "create without 'or replace' cannot be applied again")


def _commented(file: SqlFile, kind: ObjectType) -> None:
    if len(file.statements) != 2 or not isinstance(file.statements[1].stmt, ast.CommentStmt):
        file.report(1, "a file contains one object and its comment, and nothing else")
        return
    raw = file.statements[1]
    comment = raw.stmt
    line = file.line_at(raw.stmt_location)
    names = comment.object.objname if kind == ObjectType.OBJECT_FUNCTION else comment.object
    if comment.objtype != kind or names[-1].sval != file.stem:
        file.report(line, f"this is not the comment of {file.stem}")
    header = file.text.partition("\n")[0].removeprefix("-- ")
    text = comment.comment or ""
    if not text or not _leads(text, header):
        file.report(line, "the comment is not the sentence of the first line")


def _leads(text: str, header: str) -> bool:
    """Whether the two are equal, or one has further sentences."""
    short, long = sorted((text, header), key=len)
    return short == long or (long.startswith(f"{short} ") and short.endswith("."))


def _function(file: SqlFile, made: Any) -> None:
    _named(file, [part.sval for part in made.funcname], replace=made.replace)
    line = file.line_at(file.statements[0].stmt_location)
    options = {option.defname: option.arg for option in made.options}
    for parameter in made.parameters or ():
        given = parameter.mode in _INPUT
        if given and not (parameter.name or "").startswith("p_"):
            file.report(line, f"argument {parameter.name or 'without a name'} should begin with p_")
    if "volatility" not in options:
        file.report(line, "volatility is not stated")
    language = options["language"].sval if "language" in options else "sql"
    if language not in {"sql", "plpgsql"}:
        file.report(line, f"language {language}; the engine is sql and plpgsql")
    api = file.kind == "api"
    invoker = f"{file.kind}/{file.stem}" in INVOKERS
    definer = "security" in options and bool(options["security"].boolval)
    if definer and not api:
        file.report(line, "security definer is for schema trunkline only")
    if api and not definer and not invoker:
        file.report(line, "a function of schema trunkline is security definer")
    if not has_search_path(made) and not invoker and (api or language == "plpgsql"):
        file.report(line, "set search_path = pg_catalog, pg_temp is missing")


def has_search_path(made: Any) -> bool:
    """Whether a function pins the path to the system's names, temporary ones last."""
    return any(
        option.defname == "set"
        and option.arg.name == "search_path"
        and tuple(part.val.sval for part in option.arg.args or ()) == _PATH
        for option in made.options
    )


def _view(file: SqlFile, made: Any) -> None:
    _named(file, [made.view.schemaname or "", made.view.relname], replace=made.replace)
    line = file.line_at(file.statements[0].stmt_location)
    options = {option.defname for option in made.options or ()}
    if made.view.schemaname == "trunkline" and "security_barrier" not in options:
        file.report(line, "a view of schema trunkline has security_barrier")
