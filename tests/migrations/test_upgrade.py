"""A database that was upgraded from any earlier version equals one installed today."""

from __future__ import annotations

import pytest

from tests.migrations.conftest import NewDatabase
from trunkline import sql
from trunkline.schema import install, plan, upgrade, verify
from trunkline.schema.catalog import read
from trunkline.schema.session import connect, run
from trunkline.schema.verify import compare

SHIPPED = sql.migrations()


def install_only(dsn: str, number: int) -> None:
    """Leave the tables as they were after the first migrations, without any function."""
    with connect(dsn) as connection:
        for step in (*plan.opening(plan.Options()), *plan.migrating(SHIPPED[:number])):
            run(connection, step)


@pytest.mark.parametrize("number", range(1, len(SHIPPED) + 1))
def test_upgraded_equals_fresh(new_database: NewDatabase, number: int) -> None:
    fresh, upgraded = new_database(), new_database()
    install(fresh)
    install_only(upgraded, number)
    report = upgrade(upgraded)
    assert (report.before, report.version) == (number, len(SHIPPED))
    with connect(fresh) as one, connect(upgraded) as other:
        assert compare(read(one), read(other)) == []


def test_repeated_upgrade_changes_nothing(empty: str) -> None:
    install(empty)
    with connect(empty) as connection:
        before = read(connection)
    assert upgrade(empty).applied == ()
    with connect(empty) as connection:
        assert read(connection) == before
    assert verify(empty) == []
