"""Fixtures of the whole suite: two servers, and a fresh database for every test.

The process that runs pytest starts the servers; workers of pytest-xdist are told where they are.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support import databases, servers, signals
from tests.support.databases import Database
from tests.support.servers import Server, Servers

_RUNNING = pytest.StashKey[Servers]()
# The same examples in every run and on every machine, however slow it is.
hypothesis.settings.register_profile(
    "suite",
    database=None,
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("suite")
# What these try is the same on every server; both of them would take minutes more.
_NEWEST_ONLY = {"bench", "cli", "client", "review"}


def pytest_sessionstart(session: pytest.Session) -> None:
    signals.give_children_default_signals()
    # A test that forgets to name a folder for the embedded server must not use the user's own.
    os.environ["XDG_DATA_HOME"] = os.devnull
    os.environ.pop("TRUNKLINE_HOME", None)
    config = session.config
    told = getattr(config, "workerinput", {}).get("trunkline_servers")
    if told is not None:
        config.stash[servers.STASH] = servers.load(told)
    elif not config.option.collectonly:
        config.stash[_RUNNING] = Servers()
        config.stash[servers.STASH] = config.stash[_RUNNING].servers


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the older server to the tests of the engine, where the versions differ."""
    newest = servers.majors()[-1]
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        folder = item.path.relative_to(Path(__file__).parent).parts[1]
        call = getattr(item, "callspec", None)
        major = call.params.get("server", newest) if call is not None else newest
        (left_out if folder in _NEWEST_ONLY and major != newest else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the servers to a worker of pytest-xdist, before it starts."""
    node.workerinput["trunkline_servers"] = servers.dump(node.config.stash[servers.STASH])


def pytest_unconfigure(config: pytest.Config) -> None:
    running = config.stash.get(_RUNNING, None)
    if running is not None:
        running.close()


@pytest.fixture(scope="session", params=servers.majors(), ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """Each server in turn: Debian's PostgreSQL 15 and the embedded 18."""
    found = {server.major: server for server in request.config.stash[servers.STASH]}
    return found[request.param]


@pytest.fixture(scope="session")
def template(server: Server) -> str:
    """The name of a database with the schema installed, to make copies of."""
    return databases.ensure_template(server)


@pytest.fixture
def database(server: Server, template: str) -> Iterator[Database]:
    """A database of its own, with the schema installed."""
    with databases.fresh(server, template) as made:
        yield made
