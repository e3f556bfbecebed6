"""Databases of a known size, whose statistics are fresh, missing or older than their rows."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals.filling import fill
from tests.support.servers import Server


@pytest.fixture(scope="module", params=["analysed", "never analysed", "analysed when empty"])
def filled(server: Server, template: str, request: pytest.FixtureRequest) -> Iterator[Database]:
    """50,000 waiting jobs in three lanes and 20,000 finished ones; tests roll changes back."""
    with databases.fresh(server, template) as database:
        Calls(database.connect("trunkline_producer")).register("work")
        with psycopg.connect(database.superuser_dsn, autocommit=True) as superuser:
            if request.param == "analysed when empty":
                superuser.execute("analyze")
            fill(superuser, waiting=50_000)
            if request.param == "analysed":
                superuser.execute("analyze")
        yield database
