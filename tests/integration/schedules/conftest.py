"""Fixtures of the tests of schedules."""

import pytest

from tests.integration.schedules.desk import Desk
from tests.support.databases import Database


@pytest.fixture
def desk(database: Database) -> Desk:
    return Desk.open(database)
