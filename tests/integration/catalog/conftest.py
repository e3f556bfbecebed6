"""One database for all queries of the catalogue; no test changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server

Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def installed(server: Server, template: str) -> Iterator[Database]:
    """A database with the schema installed, for a whole module."""
    with databases.fresh(server, template) as database:
        yield database


@pytest.fixture(scope="module")
def ask(installed: Database) -> Ask:
    """Query the catalogue as superuser, who sees all of it."""
    connection = installed.superuser()

    def query(text: str, *arguments: object) -> list[tuple[Any, ...]]:
        return connection.execute(text.encode(), arguments or None).fetchall()

    return query
