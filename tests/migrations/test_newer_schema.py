"""An old package leaves a newer schema as it is and says which package is needed."""

from __future__ import annotations

from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from click.testing import CliRunner

from tests.migrations.test_script import psql
from tests.support import newer
from tests.support.databases import Database
from tests.support.servers import Server
from trunkline import __version__, sql
from trunkline.cli.doctor import doctor
from trunkline.cli.schema import schema
from trunkline.cli.up import up
from trunkline.errors import SchemaNewerThanClient
from trunkline.profiles import installer
from trunkline.schema import CONTRACT, install, script, upgrade, verify
from trunkline.schema.release import ordinal
from trunkline_profiles.executor import PROFILE

_MARK: LiteralString = "comment on function trunkline.wake(text) is 'of the later release'"


@pytest.fixture(params=["release", "contract", "contract alone", "migration"])
def later(request: pytest.FixtureRequest, database: Database) -> Database:
    """A database of a later release, with equal migrations or more."""
    superuser = database.superuser()
    superuser.execute(_MARK)
    match request.param:
        case "release":
            newer.apply_release(superuser)
        case "contract":
            newer.apply_contract(superuser, oldest=CONTRACT)
        case "contract alone":
            newer.apply_contract(superuser, oldest=CONTRACT, version=len(sql.migrations()))
        case _:
            newer.apply_migration(superuser)
    return database


def untouched(database: Database) -> bool:
    found = database.superuser().execute(
        "select obj_description('trunkline.wake(text)'::regprocedure)"
    )
    return found.fetchone() == ("of the later release",)


@pytest.mark.parametrize("change", [install, upgrade])
def test_old_functions_are_not_put_back(later: Database, change: object) -> None:
    assert callable(change)
    with pytest.raises(SchemaNewerThanClient) as refused:
        change(later.dsn)
    assert "pgrade the" in refused.value.hint
    assert "schema upgrade" not in refused.value.hint
    assert untouched(later)


def test_a_profile_of_an_old_package_is_not_installed(database: Database) -> None:
    newer.apply_release(database.superuser())
    with pytest.raises(SchemaNewerThanClient) as refused:
        installer.install(database.dsn, PROFILE)
    assert f"trunkline>={newer.RELEASE}" in refused.value.hint


def test_the_printed_script_refuses_a_newer_schema(
    later: Database, server: Server, tmp_path: Path
) -> None:
    done = psql(server, later.dsn, script(from_version=len(sql.migrations())), tmp_path)
    assert done.returncode != 0
    assert "the schema is newer than the package" in done.stderr
    assert "pgrade the" in done.stderr
    assert untouched(later)


def test_nobody_is_advised_to_upgrade_a_newer_schema(later: Database) -> None:
    for command, arguments in [(doctor, []), (schema, ["verify"])]:
        done = CliRunner().invoke(command, [*arguments, "--dsn", later.dsn])
        assert "schema upgrade" not in done.output
        assert "pgrade the" in done.output


def test_up_leaves_a_schema_that_no_longer_serves_it(database: Database) -> None:
    newer.apply_contract(database.superuser(), oldest=CONTRACT + 1)
    done = CliRunner().invoke(up, ["--dsn", database.dsn])
    assert isinstance(done.exception, SchemaNewerThanClient)
    assert f"trunkline>={newer.RELEASE}" in done.exception.hint


def test_the_same_release_applies_its_functions_again(database: Database) -> None:
    database.superuser().execute(_MARK)
    upgrade(database.dsn)
    assert not untouched(database)
    assert verify(database.dsn) == []
    with psycopg.connect(database.dsn) as connection:
        row = connection.execute("select trunkline.schema_release()").fetchone()
    assert row == (__version__,)


def test_releases_compare_in_order() -> None:
    names = ["0.1.0.dev1", "0.1.0a1", "0.1.0b2", "0.1.0rc1", "0.1.0", "0.1.1", "0.10.0", "1", "1.2"]
    assert sorted(names, key=ordinal) == names
