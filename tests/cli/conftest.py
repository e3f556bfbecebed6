"""A database with some tasks, and the command line connected to it."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database


@pytest.fixture
def calls(database: Database) -> Calls:
    """Calls of the engine's functions, to arrange a test."""
    calls = Calls(database.connect())
    calls.register("send", queue="mail")
    calls.register("once", max_attempts=1)
    calls.register("watched", audit=True)
    return calls


@pytest.fixture
def cli(database: Database, calls: Calls) -> Cli:
    """The command line in this process, with the database of the test."""
    return Cli(database.dsn)
