"""The page about the profile and its registered refusals: what they say is true."""

import re
from pathlib import Path

import psycopg
import pytest

from profiles.tests.executor.test_cli import trunkline
from profiles.tests.exports.conftest import Exports
from tests.support.databases import Database
from trunkline_profiles.exports import PROFILE
from trunkline_profiles.exports.__main__ import options
from trunkline_profiles.exports.http import ROUTES
from trunkline_profiles.exports.refusals import ERRORS, ExportRefusal

TEXT = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
# Run elsewhere: test_distribution installs the package, flow starts workers and the demonstration.
ELSEWHERE = ("pip install", "trunkline profile demo", "python -m")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_the_sql_of_the_page_runs(exports: Exports) -> None:
    assert len(blocks("sql")) >= 2
    for block in blocks("sql"):
        exports.operator.connection.execute(block.encode())
    assert len(exports.jobs()) == 1


def test_the_commands_of_the_page_run(database: Database) -> None:
    """EX-10, EX-87: install, list the steps, and take one."""
    ran = 0
    for line in "".join(blocks("console")).splitlines():
        command = line.removeprefix("$ ")
        if not command.startswith(ELSEWHERE):
            words = command.split()
            assert words[:2] == ["trunkline", "profile"], command
            trunkline(database, *words[2:])
            ran += 1
    assert ran >= 3


def test_the_routes_of_the_page_exist() -> None:
    def plain(path: str) -> str:
        return re.sub(r":\w+|\{\w+\}", ":id", path)

    named = set(re.findall(r"^\| `(GET|POST|DELETE) (/api\S+)`", TEXT, re.MULTILINE))
    assert {(method, plain(path)) for method, path in named} == {
        (one.method, plain(one.path)) for one in ROUTES.operations
    }


def test_a_worker_renders_three_at_once() -> None:
    """EX-03: by default."""
    found = options({})
    assert (found.concurrency, found.queues) == (3, ("exports", "exports-cleanup"))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_a_refusal_has_a_row_on_the_page(error: type[ExportRefusal]) -> None:
    _, _, part = TEXT.partition("## Refusals\n")
    (row,) = [line for line in part.splitlines() if error.sqlstate in line]
    assert f"`{error.code.removeprefix('exports_')}` | {error.http_status} |" in row


def test_functions_raise_what_is_registered(exports: Exports) -> None:
    for error in ERRORS:
        with pytest.raises(psycopg.Error) as raised:
            exports.database.superuser().execute(
                "select exports.refuse(%s, 'no')", [error.code.removeprefix("exports_")]
            )
        assert (raised.value.sqlstate, raised.value.diag.message_hint) == (
            error.sqlstate,
            error.hint,
        )
    raising = set(re.findall(r"'(EX\d{3})'", PROFILE.text("phase1", "base.sql")))
    assert raising == {error.sqlstate for error in ERRORS}


def test_the_profile_can_be_taken_back_and_installed_again(database: Database) -> None:
    """EX-10, EX-87: functions first; tables only on request, and jobs stay."""
    trunkline(database, "install", "exports")
    trunkline(database, "rollback", "exports", "--yes")
    owner = database.connect("trunkline_owner")
    count = "select count(*) from pg_proc where pronamespace = 'exports'::regnamespace"
    assert owner.execute(count.encode()).fetchall()[0][0] < 12
    trunkline(database, "install", "exports")
    trunkline(database, "rollback", "exports", "--yes", "--purge")
    rest = owner.execute(
        b"select count(*) from pg_class where relnamespace = to_regnamespace('exports')"
    )
    assert rest.fetchone() == (0,)
    trunkline(database, "install", "exports")
