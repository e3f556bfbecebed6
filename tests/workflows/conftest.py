"""A database with the guard, and the task of all steps."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from tests.support import guard
from tests.support.databases import Database
from tests.workflows.flow import Flow


@pytest.fixture
def flow(database: Database) -> Flow:
    """Calls on a database that refuses illegal changes of state and finds deadlocks in 20 ms."""
    guard.install(database)
    with psycopg.connect(database.superuser_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("alter database {} set deadlock_timeout = '20ms'").format(
                sql.Identifier(database.name)
            )
        )
    found = Flow(database)
    found.producer.register("work", max_attempts=1)
    return found
