"""The page about the profile and its registered refusals: what they say is true."""

import re
from pathlib import Path

import psycopg
import pytest

from profiles.tests.executor.test_cli import trunkline
from profiles.tests.studio.conftest import Studio
from tests.support.databases import Database
from trunkline_profiles.studio import PROFILE
from trunkline_profiles.studio.__main__ import POOLS, options
from trunkline_profiles.studio.refusals import ERRORS, StudioRefusal

TEXT = (Path(__file__).parents[2] / "docs" / "studio.md").read_text(encoding="utf-8")
# Run elsewhere: test_distribution installs the package, flow starts workers and the demonstration.
ELSEWHERE = ("pip install", "trunkline profile demo", "python -m")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_the_sql_of_the_page_runs(studio: Studio) -> None:
    assert len(blocks("sql")) >= 4
    for block in blocks("sql"):
        studio.operator.connection.execute(block.encode())
    assert studio.operator.value("select count(*) from studio.job_tasks") == 48


def test_the_commands_of_the_page_run(database: Database) -> None:
    """TA-66: install, list the steps, and take them."""
    ran = 0
    for line in "".join(blocks("console")).splitlines():
        command = re.sub(r"\s+#.*", "", line.removeprefix("$ "))
        if not command.startswith(ELSEWHERE):
            words = command.split()
            assert words[:2] == ["trunkline", "profile"], command
            trunkline(database, *words[2:])
            ran += 1
    assert ran >= 5


def test_the_pools_of_the_page_exist() -> None:
    """TA-31: one for each type."""
    named = re.findall(r"^\$ python -m trunkline_profiles.studio (\w+)$", TEXT, re.MULTILINE)
    assert sorted(named) == sorted(POOLS)
    for pool in POOLS:
        found = options([pool], {})
        assert (found.concurrency, found.tasks, found.name) == (
            *(5, (POOLS[pool][1],)),
            f"studio-{pool}",
        )


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_a_refusal_has_a_row_on_the_page(error: type[StudioRefusal]) -> None:
    _, _, part = TEXT.partition("## Refusals\n")
    (row,) = [line for line in part.splitlines() if error.sqlstate in line]
    assert f"`{error.code.removeprefix('studio_')}`" in row


def test_functions_raise_what_is_registered(studio: Studio) -> None:
    superuser = studio.database.superuser()
    for error in ERRORS:
        with pytest.raises(psycopg.Error) as raised:
            superuser.execute(
                "select studio.refuse(%s, 'no')", [error.code.removeprefix("studio_")]
            )
        assert (raised.value.sqlstate, raised.value.diag.message_hint) == (
            error.sqlstate,
            error.hint,
        )
    raising = set(re.findall(r"'(TA\d{3})'", PROFILE.text("phase1", "base.sql")))
    assert raising == {error.sqlstate for error in ERRORS}


def test_the_profile_can_be_taken_back_and_installed_again(database: Database) -> None:
    """TA-66: functions first; tables only on request, and jobs stay."""
    trunkline(database, "install", "studio")
    trunkline(database, "rollback", "studio", "--yes")
    owner = database.connect("trunkline_owner")
    count = "select count(*) from pg_proc where pronamespace = 'studio'::regnamespace"
    assert owner.execute(count.encode()).fetchall()[0][0] < 12
    trunkline(database, "install", "studio")
    trunkline(database, "rollback", "studio", "--yes", "--purge")
    rest = owner.execute(
        b"select count(*) from pg_class where relnamespace = to_regnamespace('studio')"
    )
    assert rest.fetchone() == (0,)
    trunkline(database, "install", "studio")
