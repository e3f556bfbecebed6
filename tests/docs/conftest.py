"""Commands of the docs run on the newest server only: other tests cover the differences."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.running import Session, environment
from tests.support import databases, servers


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A reader with an empty folder and a separate database with the schema."""
    running = request.config.stash[servers.STASH]
    newest = max(running, key=lambda server: server.major)
    folder = tmp_path / "work"
    folder.mkdir()
    with databases.fresh(newest, databases.ensure_template(newest)) as database:
        variables = environment(home=tmp_path / "home", dsn=database.dsn)
        with Session(folder, variables) as session:
            yield session
