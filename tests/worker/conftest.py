"""The parts of a worker, and whole workers inside the process of the test.

They run on the newest server: only the engine depends on the version of PostgreSQL.
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

# Only a failing test takes this long.
_DEADLINE = 400.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is `async def` in its own event loop."""
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
            # The application's connections belong to this event loop.
            for argument in arguments.values():
                if isinstance(argument, Scene):
                    await argument.app.close()

    asyncio.run(within_deadline())
    return True


@pytest.fixture(scope="session", params=servers.majors()[-1:], ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """The newest server only."""
    by_major = {server.major: server for server in request.config.stash[servers.STASH]}
    return by_major[request.param]


@pytest.fixture
def scene(guard: Database) -> Scene:
    """A database with short intervals, and an application without tasks."""
    return Scene(guard)


@pytest.fixture(autouse=True)
def all_levels(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Make `caplog` record all log lines of workers."""
    with caplog.at_level(logging.DEBUG, logger="trunkline"):
        yield
