"""Scenes for the chaos tests.

They run on the newest server: differences between versions of PostgreSQL affect only the engine and
are tested elsewhere. The storms and the restarts, on a private server, use every version.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.private_server import PrivateServer, running
from tests.chaos.scene import Scene
from tests.support import servers
from tests.support.databases import Database
from tests.support.servers import Server


@pytest.fixture(scope="session", params=servers.majors()[-1:], ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """The newest server only."""
    by_major = {server.major: server for server in request.config.stash[servers.STASH]}
    return by_major[request.param]


@pytest.fixture
def scene(database: Database, tmp_path: Path) -> Iterator[Scene]:
    """A database with short intervals on a shared server, without workers yet."""
    new_scene = Scene(database, tmp_path)
    try:
        yield new_scene
    finally:
        new_scene.close()


@pytest.fixture(scope="session", params=servers.majors(), ids=lambda major: f"pg{major}")
def private_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrivateServer]:
    """A server that only this process uses, so that it may be stopped."""
    with running(tmp_path_factory.mktemp("private"), request.param) as own_server:
        yield own_server


@pytest.fixture
def private_scene(private_server: PrivateServer, tmp_path: Path) -> Iterator[Scene]:
    """A scene on the private server, which runs again for the next test."""
    with private_server.database() as database:
        new_scene = Scene(database, tmp_path)
        try:
            yield new_scene
        finally:
            new_scene.close()
