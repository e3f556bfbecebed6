"""Databases with the guard, which detect a deadlock at once."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql

from tests.support.calls import Calls
from tests.support.databases import Database

Connect = Callable[..., Calls]


@pytest.fixture
def guarded(guard: Database) -> Database:
    """A database that refuses illegal changes of state and detects deadlocks after 20 ms."""
    with psycopg.connect(guard.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("alter database {} set deadlock_timeout = '20ms'").format(
                sql.Identifier(guard.name)
            )
        )
    Calls(guard.connect("trunkline_producer")).register("work")
    return guard


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
    """A superuser's connection that takes no part in the test."""
    return guarded.superuser()
