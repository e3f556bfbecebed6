"""The register in the database, sql/README.md and trunkline.errors are the same set."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import psycopg
import pytest

from tests.support.databases import Database
from tests.support.internals.refusals import refuse, registered
from tools.generate_docs import refusals
from trunkline import sql
from trunkline.errors import SQLSTATES

SOURCES = Path(str(files("trunkline")))
ROW = re.compile(
    r"^\| (?P<code>TL\d{3}) \| `(?P<name>\w+)` \| (?P<message>[^|]+) \| (?P<hint>[^|]+) "
    r"\| (?P<passes>yes|no) \| `(?P<python>\w+)` \| (?P<http>\d{3}) \|$",
    re.MULTILINE,
)
# By name through the function, or whole in the scripts that run before there is one.
BY_FUNCTION = re.compile(r"(?:refuse\(\s*(?:p_name => )?|'refusal', )'(\w+)'")
BY_SCRIPT = re.compile(
    r"errcode = '(TL\d{3})',\s*message = '([^']+)',\s*"
    r"detail = json_build_object\(\s*'code', '(\w+)'"
)


def engine_text() -> str:
    repeatables = [one.text for one in sql.repeatables()]
    return "\n".join([*repeatables, sql.roles_sql(), sql.supabase_roles_sql(), sql.grants_sql()])


def test_the_three_are_equal(database: Database) -> None:
    in_database = registered(database.superuser())
    in_readme = [
        (row["code"], row["name"], row["python"], row["passes"] == "yes", int(row["http"]))
        for row in ROW.finditer((SOURCES / "sql" / "README.md").read_text(encoding="utf-8"))
    ]
    in_python = [
        (found.sqlstate, found.code, found.__name__, found.retryable, found.http_status)
        for _, found in sorted(SQLSTATES.items())
    ]
    assert in_readme == in_python
    assert [(code, name) for code, name, _, _ in in_database] == [row[:2] for row in in_python]


def test_the_docs_are_generated_from_the_register_in_the_database(database: Database) -> None:
    assert refusals() == registered(database.superuser())


def test_codes_names_and_messages_are_unique_and_hints_are_given(database: Database) -> None:
    rows = registered(database.superuser())
    for column in range(3):
        assert len({row[column] for row in rows}) == len(rows)
    assert all(re.fullmatch(r"TL\d{3}", code) and hint for code, _, _, hint in rows)
    # Constant and free of values, so that refusals can be grouped by it.
    assert [message for _, _, message, _ in rows if "%" in message] == []


def test_every_refusal_is_used_and_every_one_used_is_registered() -> None:
    python = "\n".join(
        path.read_text(encoding="utf-8")
        for package in ("artifacts", "schema")
        for path in sorted((SOURCES / package).rglob("*.py"))
    )
    scripts = BY_SCRIPT.findall(engine_text() + python)
    used = set(BY_FUNCTION.findall(engine_text())) | {name for _, _, name in scripts}
    raised = {found.code for found in SQLSTATES.values() if f"raise {found.__name__}(" in python}
    assert used | raised == {name for _, name, _, _ in refusals()}


def test_scripts_that_cannot_ask_the_register_say_the_same() -> None:
    known = {(code, message, name) for code, name, message, _ in refusals()}
    python = (SOURCES / "schema" / "script.py").read_text(encoding="utf-8")
    scripts = BY_SCRIPT.findall(engine_text() + python)
    assert len(scripts) == len(re.findall(r"errcode = 'TL", engine_text() + python)) >= 6
    assert set(scripts) <= known


def test_refuse_knows_no_other_name(database: Database) -> None:
    with pytest.raises(psycopg.errors.AssertFailure):
        refuse(database.superuser(), "no_such_refusal")
