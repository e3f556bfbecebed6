"""A database with some tasks, and the command line pointed at it."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database


@pytest.fixture
def calls(database: Database) -> Calls:
    """The engine's functions, for arranging."""
    made = Calls(database.connect())
    made.register("send", queue="mail")
    made.register("once", max_attempts=1)
    made.register("watched", audit=True)
    return made


@pytest.fixture
def cli(database: Database, calls: Calls) -> Cli:
    """The command line in this process, with the database of the test."""
    return Cli(database.dsn)
