"""A schema from before the baseline is refused everywhere, and nothing in it is changed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import psycopg
import pytest
from click.testing import CliRunner

from tests.migrations.test_script import psql
from tests.support import older
from tests.support.databases import Database
from tests.support.servers import Server
from tests.support.worker_process import WorkerProcess
from trunkline import Trunkline, sql
from trunkline.cli.doctor import doctor
from trunkline.cli.schema import schema
from trunkline.cli.up import up
from trunkline.errors import SchemaPredatesBaseline
from trunkline.profiles import installer
from trunkline.schema import install, script, uninstall, upgrade, verify
from trunkline.schema.contract import (
    BASELINE_CONTRACT,
    SchemaVersion,
    check_contract,
    check_contract_async,
    judge,
)
from trunkline_profiles.executor import PROFILE


@pytest.fixture
def old(database: Database) -> Database:
    older.apply(database.superuser())
    return database


def untouched(database: Database) -> bool:
    rows = database.superuser().execute(
        "select count(*), (trunkline.schema_version()).contract"
        " from trunkline_internal.schema_migrations"
    )
    return rows.fetchone() == (30, 4)


@pytest.mark.parametrize("change", [install, upgrade])
@pytest.mark.parametrize("known_by", ["rows", "contract", "both"])
def test_it_is_neither_installed_over_nor_upgraded(
    database: Database, change: object, known_by: str
) -> None:
    assert callable(change)
    superuser = database.superuser()
    older.apply(superuser)
    if known_by == "rows":
        superuser.execute(next(o.text for o in sql.repeatables() if o.name == "schema_version"))
    if known_by == "contract":
        superuser.execute("delete from trunkline_internal.schema_migrations where version > 1")
        superuser.execute(
            "update trunkline_internal.schema_migrations set name = %s, sha256 = %s",
            (sql.migrations()[0].name, sql.migrations()[0].sha256),
        )
    with pytest.raises(SchemaPredatesBaseline) as refused:
        change(database.dsn)
    assert "trunkline db reset" in refused.value.hint
    assert "trunkline schema uninstall" in refused.value.hint
    assert known_by != "both" or untouched(database)


def test_verify_refuses_it(old: Database) -> None:
    with pytest.raises(SchemaPredatesBaseline):
        verify(old.dsn)
    done = CliRunner().invoke(schema, ["verify", "--dsn", old.dsn])
    assert isinstance(done.exception, SchemaPredatesBaseline)


def test_verify_names_differences_where_the_version_cannot_be_read(database: Database) -> None:
    database.superuser().execute("drop function trunkline.schema_version()")
    assert "missing function trunkline.schema_version" in map(str, verify(database.dsn))


def test_doctor_names_it_with_what_to_do(old: Database) -> None:
    done = CliRunner().invoke(doctor, ["--dsn", old.dsn, "--json"])
    assert done.exit_code == 1
    (finding,) = [one for one in json.loads(done.stdout)["checks"] if one["check"] == "schema"]
    assert "before the baseline" in finding["message"]
    assert "trunkline db reset" in finding["hint"]


def test_up_refuses_it(old: Database) -> None:
    done = CliRunner().invoke(up, ["--dsn", old.dsn])
    assert isinstance(done.exception, SchemaPredatesBaseline)
    assert untouched(old)


def test_a_worker_does_not_start(old: Database, tmp_path: Path) -> None:
    worker = WorkerProcess(
        "tests.migrations.upgrade_app:app",
        environment={"TRUNKLINE_DSN": old.dsn},
        log=tmp_path / "worker.log",
    )
    try:
        assert worker.until_ended() != 0
        assert "schema_predates_baseline" in worker.log
        assert "trunkline db reset" in worker.log
    finally:
        worker.destroy()
    assert untouched(old)


def test_the_client_refuses_it(old: Database) -> None:
    app = Trunkline(old.dsn)

    @app.task
    async def note() -> None: ...

    with pytest.raises(SchemaPredatesBaseline):
        note.sync.enqueue()
    with pytest.raises(SchemaPredatesBaseline):
        check_contract(old.connect("trunkline_producer"))

    async def ask() -> None:
        async with await psycopg.AsyncConnection.connect(old.dsn) as connection:
            await check_contract_async(connection)

    with pytest.raises(SchemaPredatesBaseline):
        asyncio.run(ask())


def test_a_profile_is_not_installed_into_it(old: Database) -> None:
    with pytest.raises(SchemaPredatesBaseline):
        installer.install(old.dsn, PROFILE)


@pytest.mark.parametrize("version", [0, len(sql.migrations())])
def test_the_printed_script_refuses_it(
    old: Database, server: Server, tmp_path: Path, version: int
) -> None:
    done = psql(server, old.dsn, script(from_version=version), tmp_path)
    assert done.returncode == 3
    assert "schema is from before the baseline" in done.stderr
    assert "trunkline schema uninstall" in done.stderr
    assert untouched(old)


def test_uninstall_and_install_replace_it(old: Database) -> None:
    uninstall(old.dsn, drop_roles=False)
    assert install(old.dsn).before == 0
    assert verify(old.dsn) == []


def test_the_contract_before_the_baseline_is_refused_and_the_first_one_is_not() -> None:
    first = SchemaVersion(version=1, contract=BASELINE_CONTRACT, oldest_contract=BASELINE_CONTRACT)
    assert judge(first, contract=BASELINE_CONTRACT) is first
    before = SchemaVersion(version=30, contract=BASELINE_CONTRACT - 1, oldest_contract=1)
    with pytest.raises(SchemaPredatesBaseline) as refused:
        judge(before)
    assert (refused.value.code, refused.value.sqlstate) == ("schema_predates_baseline", "TL095")
