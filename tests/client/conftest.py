"""An application with its own database, called through both clients."""

from collections.abc import Iterator

import pytest

from tests.client.twins import Hands, Twin
from tests.support.databases import Database
from trunkline import Trunkline


@pytest.fixture
def app(database: Database) -> Trunkline:
    """An application without tasks; each test declares its own."""
    return Trunkline(database.dsn)


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def twin(app: Trunkline, request: pytest.FixtureRequest) -> Iterator[Twin]:
    """The asynchronous or the blocking client of the application, closed at the end."""
    with Twin(app, blocking=request.param) as client:
        yield client


@pytest.fixture
def hands(database: Database) -> Hands:
    """Calls of a worker that completes the jobs."""
    return Hands(database)
