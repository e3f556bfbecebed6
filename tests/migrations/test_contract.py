"""A client and a schema of different releases either understand each other or say why not."""

from __future__ import annotations

import asyncio
import logging

import psycopg
import pytest

from tests.support.databases import Database
from trunkline import sql
from trunkline.errors import (
    SchemaForbidden,
    SchemaMissing,
    SchemaNewerThanClient,
    SchemaOlderThanClient,
)
from trunkline.schema.contract import (
    BASELINE_CONTRACT,
    CONTRACT,
    SchemaVersion,
    check_contract,
    check_contract_async,
    judge,
)

REPLACED = """
create or replace function trunkline.schema_version() returns trunkline.schema_version_info
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$ select (99, {contract}, {oldest})::trunkline.schema_version_info $$
"""


def test_equal_contract_goes() -> None:
    schema = SchemaVersion(version=9, contract=3, oldest_contract=3)
    assert judge(schema, contract=3) is schema


def test_newer_schema_that_still_serves_us_warns(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        judge(SchemaVersion(version=9, contract=4, oldest_contract=2), contract=3)
    assert "newer than this client" in caplog.text


def test_newer_schema_that_no_longer_serves_us_is_refused() -> None:
    with pytest.raises(SchemaNewerThanClient) as refused:
        judge(SchemaVersion(version=9, contract=4, oldest_contract=4), contract=3)
    assert (refused.value.code, refused.value.sqlstate) == ("schema_newer_than_client", "TL014")


def test_older_schema_names_the_command_to_run() -> None:
    with pytest.raises(SchemaOlderThanClient) as refused:
        judge(SchemaVersion(version=1, contract=2, oldest_contract=1), contract=3)
    assert "trunkline schema upgrade" in refused.value.hint


def test_missing_schema_names_the_command_to_run(empty: str) -> None:
    with psycopg.connect(empty) as connection, pytest.raises(SchemaMissing) as refused:
        check_contract(connection)
    assert "trunkline schema install" in refused.value.hint


@pytest.mark.parametrize(
    "role", ["trunkline_producer", "trunkline_worker", "trunkline_operator", "trunkline_reader"]
)
def test_every_role_can_ask(database: Database, role: str) -> None:
    answer = check_contract(database.connect(role))
    assert answer == SchemaVersion(
        version=len(sql.migrations()), contract=CONTRACT, oldest_contract=BASELINE_CONTRACT
    )


def test_asynchronous_connection_gets_the_same_answer(database: Database) -> None:
    async def ask() -> SchemaVersion:
        connection = await psycopg.AsyncConnection.connect(database.dsn)
        async with connection:
            return await check_contract_async(connection)

    assert asyncio.run(ask()).version == len(sql.migrations())


def test_connection_is_usable_after_a_refusal(empty: str) -> None:
    with psycopg.connect(empty) as connection:
        with pytest.raises(SchemaMissing):
            check_contract(connection)
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_role_without_a_grant_is_refused_with_that_reason(database: Database) -> None:
    with pytest.raises(SchemaForbidden) as refused:
        check_contract(database.connect("pg_read_all_settings"))
    assert "trunkline_producer" in refused.value.hint


def test_breaking_schema_refuses_this_client(database: Database) -> None:
    database.superuser().execute(
        REPLACED.format(contract=CONTRACT + 1, oldest=CONTRACT + 1).encode()
    )
    with pytest.raises(SchemaNewerThanClient):
        check_contract(database.connect("trunkline_worker"))


def test_contract_of_the_function_is_the_contract_of_the_client() -> None:
    function = next(one for one in sql.repeatables() if one.name == "schema_version")
    assert f"c_contract constant integer := {CONTRACT};" in function.text
