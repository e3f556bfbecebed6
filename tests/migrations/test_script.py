"""The printed script does with psql what an installation does."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.migrations.conftest import NewDatabase
from tests.migrations.forward import engine_after, install_only
from tests.support.servers import Server
from trunkline import sql
from trunkline.errors import SchemaNewerThanClient
from trunkline.schema import install, script, verify
from trunkline.schema.catalog import read
from trunkline.schema.plan import Options
from trunkline.schema.runner import bring_up_to_date
from trunkline.schema.session import connect
from trunkline.schema.verify import compare

NEWEST = len(sql.migrations())


def psql(server: Server, dsn: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    file = folder / "script.sql"
    file.write_text(text, encoding="utf-8")
    return subprocess.run(
        [Path(server.bindir) / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, dsn],
        capture_output=True,
        text=True,
        check=False,
    )


def test_script_equals_installation(
    server: Server, new_database: NewDatabase, tmp_path: Path
) -> None:
    installed, printed = new_database(), new_database()
    install(installed)
    done = psql(server, printed, script(), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with connect(installed) as one, connect(printed) as other:
        assert compare(read(one), read(other)) == []
    assert verify(printed) == []


def test_script_is_refused_by_an_installed_database(
    server: Server, empty: str, tmp_path: Path
) -> None:
    install(empty)
    done = psql(server, empty, script(), tmp_path)
    assert done.returncode == 3
    assert "script starts from another version than the database has" in done.stderr
    assert f"trunkline schema sql --from {NEWEST}" in done.stderr
    assert verify(empty) == []


@pytest.mark.parametrize("number", range(1, NEWEST + 1))
def test_script_from_a_version_upgrades_it(
    server: Server, new_database: NewDatabase, tmp_path: Path, number: int
) -> None:
    installed, upgraded = new_database(), new_database()
    later = engine_after(tmp_path / "later")
    bring_up_to_date(installed, Options(root=later), from_nothing=True)
    install_only(upgraded, sql.migrations()[:number])
    done = psql(server, upgraded, script(from_version=number, root=later), tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    with connect(installed) as one, connect(upgraded) as other:
        assert compare(read(one), read(other)) == []


def test_script_from_the_newest_version_may_be_repeated(
    server: Server, empty: str, tmp_path: Path
) -> None:
    install(empty)
    text = script(from_version=NEWEST)
    assert "-- migrations/" not in text
    for _ in range(2):
        assert psql(server, empty, text, tmp_path).returncode == 0
    assert verify(empty) == []


def test_script_from_a_version_is_refused_by_an_empty_database(
    server: Server, empty: str, tmp_path: Path
) -> None:
    done = psql(server, empty, script(from_version=1), tmp_path)
    assert done.returncode == 3
    with psycopg.connect(empty) as connection:
        assert connection.execute("select to_regnamespace('trunkline')").fetchone() == (None,)


def test_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SchemaNewerThanClient, match=str(NEWEST + 1)):
        script(from_version=NEWEST + 1)


def test_tenant_role_is_quoted() -> None:
    text = script(tenant_roles=['od"d'])
    assert 'grant usage on schema trunkline to "od""d";' in text
