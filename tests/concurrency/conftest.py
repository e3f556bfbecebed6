"""Databases with the guard, where a deadlock shows at once."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.support import guard
from tests.support.calls import Calls
from tests.support.databases import Database

Connect = Callable[..., Calls]


@pytest.fixture
def guarded(database: Database) -> Database:
    """A database that refuses illegal changes of state; deadlocks are found after 20 ms."""
    guard.install(database)
    with psycopg.connect(database.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("alter database {} set deadlock_timeout = '20ms'").format(
                sql.Identifier(database.name)
            )
        )
    Calls(database.connect("trunkline_producer")).register("work")
    return database


@pytest.fixture
def producer(guarded: Database) -> Calls:
    return Calls(guarded.connect("trunkline_producer"))


@pytest.fixture
def worker(guarded: Database) -> Calls:
    return Calls(guarded.connect("trunkline_worker"))


@pytest.fixture
def operator(guarded: Database) -> Calls:
    return Calls(guarded.connect("trunkline_operator"))


@pytest.fixture
def observer(guarded: Database) -> psycopg.Connection[Any]:
    """Sees everything, belongs to no story."""
    return guarded.superuser()
