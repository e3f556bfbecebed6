"""An application with a database of its own, asked in both ways."""

from collections.abc import Iterator

import pytest

from tests.client.twins import Hands, Twin
from tests.support.databases import Database
from trunkline import Trunkline


@pytest.fixture
def app(database: Database) -> Trunkline:
    """Without tasks; each test declares its own."""
    return Trunkline(database.dsn)


@pytest.fixture(params=[False, True], ids=["async", "sync"])
def twin(app: Trunkline, request: pytest.FixtureRequest) -> Iterator[Twin]:
    """The client of the application in either form, closed at the end."""
    with Twin(app, blocking=request.param) as made:
        yield made


@pytest.fixture
def hands(database: Database) -> Hands:
    """Whoever completes the jobs."""
    return Hands(database)
