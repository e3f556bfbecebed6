"""The parts of a worker, and whole workers inside the process of the test.

They run on the newest server: what differs between versions of PostgreSQL is the engine's business.
"""

import asyncio
import inspect
import logging
from collections.abc import Iterator

import pytest

from tests.support import servers
from tests.support.databases import Database
from tests.support.servers import Server
from tests.worker.scene import Scene

# Only a failing test ever takes it.
_DEADLINE = 400.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is `async def` in an event loop of its own."""
    function = pyfuncitem.obj
    if not inspect.iscoroutinefunction(function):
        return None
    names = inspect.signature(function).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}

    async def within_deadline() -> None:
        try:
            async with asyncio.timeout(_DEADLINE):
                await function(**arguments)
        finally:
            # Its connections belong to this event loop.
            for used in arguments.values():
                if isinstance(used, Scene):
                    await used.app.close()

    asyncio.run(within_deadline())
    return True


@pytest.fixture(scope="session", params=servers.majors()[-1:], ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """The newest server only."""
    found = {server.major: server for server in request.config.stash[servers.STASH]}
    return found[request.param]


@pytest.fixture
def scene(database: Database) -> Scene:
    """A database in a hurry, and an application without tasks."""
    return Scene(database)


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Let `caplog` hear everything that workers say."""
    with caplog.at_level(logging.DEBUG, logger="trunkline"):
        yield
