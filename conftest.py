"""Fixtures of the whole suite: two servers, and a fresh database for every test.

The process that runs pytest starts the servers; workers of pytest-xdist are told where they are.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.support import databases, order, servers, signals
from tests.support import guard as guards
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
_NEWEST_ONLY = {"bench", "cli", "client"}
# Profiles: handlers with their stubs, and what a person types or reads. Their SQL is tried on both.
_NEWEST_ONLY_OF_PROFILES = {
    "flow",
    "test_cli.py",
    "test_cp_cli.py",
    "test_cp_page.py",
    "test_page.py",
}


def pytest_sessionstart(session: pytest.Session) -> None:
    signals.give_children_default_signals()
    # Compile each module once per checkout, not once per process: a run starts some thousand.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
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
    """Leave the older server to the tests of the engine, where the versions differ; order them."""
    newest = servers.majors()[-1]
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        call = getattr(item, "callspec", None)
        major = call.params.get("server", newest) if call is not None else newest
        (left_out if major != newest and _is_for_the_newest(item.path) else kept).append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    items[:] = order.slow_first(kept)


def _is_for_the_newest(path: Path) -> bool:
    top, room, *inner = path.relative_to(Path(__file__).parent).parts
    if top == "profiles":
        return not _NEWEST_ONLY_OF_PROFILES.isdisjoint(inner)
    return room in _NEWEST_ONLY


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the servers to a worker of pytest-xdist, before it starts."""
    node.workerinput["trunkline_servers"] = servers.dump(node.config.stash[servers.STASH])


def pytest_unconfigure(config: pytest.Config) -> None:
    databases.close_administrators()
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
def database(request: pytest.FixtureRequest, server: Server, template: str) -> Iterator[Database]:
    """A separate database with the schema installed, and with the guard if the test asks for it."""
    if "guard" in request.fixturenames:
        template = guards.ensure_template(server)
    with databases.fresh(server, template) as made:
        yield made


@pytest.fixture
def guard(database: Database) -> Database:
    """The database of the test, which refuses illegal changes of state from any role."""
    return database
