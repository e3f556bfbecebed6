"""One database for all questions to the catalogue; nothing here changes it."""

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
    with databases.fresh(server, template) as made:
        yield made


@pytest.fixture(scope="module")
def ask(installed: Database) -> Ask:
    """Ask the catalogue as superuser, who sees all of it."""
    connection = installed.superuser()

    def query(text: str, *arguments: object) -> list[tuple[Any, ...]]:
        return connection.execute(text.encode(), arguments or None).fetchall()

    return query
