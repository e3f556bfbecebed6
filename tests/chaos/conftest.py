"""Scenes for the chaos tests.

They run on the newest server: what differs between versions of PostgreSQL is the engine's business
and tested elsewhere. The storms and the restarts, on a private server, use every version.
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
    found = {server.major: server for server in request.config.stash[servers.STASH]}
    return found[request.param]


@pytest.fixture
def scene(database: Database, tmp_path: Path) -> Iterator[Scene]:
    """A database in a hurry on a shared server, with nobody working yet."""
    made = Scene(database, tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="session", params=servers.majors(), ids=lambda major: f"pg{major}")
def private_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrivateServer]:
    """A server that only this process uses, so that it may be stopped."""
    with running(tmp_path_factory.mktemp("private"), request.param) as made:
        yield made


@pytest.fixture
def private_scene(private_server: PrivateServer, tmp_path: Path) -> Iterator[Scene]:
    """The same as ``scene`` on the private server, which is up again for the next test."""
    with private_server.database() as database:
        made = Scene(database, tmp_path)
        try:
            yield made
        finally:
            made.close()
