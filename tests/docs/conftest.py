"""Docs are run against one server, the newest: what differs between servers has its own tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.running import Session, environment
from tests.support import databases, servers


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Session]:
    """A reader with an empty folder and an own database, in which the schema is installed."""
    running = request.config.stash[servers.STASH]
    newest = max(running, key=lambda one: one.major)
    folder = tmp_path / "work"
    folder.mkdir()
    with databases.fresh(newest, databases.ensure_template(newest)) as database:
        known = environment(home=tmp_path / "home", dsn=database.dsn)
        with Session(folder, known) as session:
            yield session
