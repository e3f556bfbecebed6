"""Fixtures for pytest, found by it through the entry point of the package.

Say which application they are for in the configuration of pytest,

    [tool.pytest.ini_options]
    trunkline_app = "shop.jobs:app"

or by a fixture `trunkline_app` of your own. pytest-xdist is supported: its processes share one
server.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trunkline import Trunkline
    from trunkline.testing import AsyncSandbox, Sandbox

_HOME = "trunkline_sandbox_home"
_FOLDER = pytest.StashKey[Path]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting."""
    parser.addini("trunkline_app", "The application of the sandbox fixtures: module:variable.")


def pytest_configure(config: pytest.Config) -> None:
    """In a process of pytest-xdist: use the server that all of them share."""
    home = getattr(config, "workerinput", {}).get(_HOME)
    if home is not None:
        from trunkline.testing import server  # noqa: PLC0415 - only where it is used

        server.share(Path(home))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of pytest-xdist where the shared server is to be."""
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="trunkline-sandbox-"))
    node.workerinput[_HOME] = str(stash[_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop what was started."""
    started = sys.modules.get("trunkline.testing.server")
    if started is not None:
        started.leave()
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


@pytest.fixture
def trunkline_app(request: pytest.FixtureRequest) -> Trunkline:
    """The application under test; override it, or set trunkline_app in the configuration."""
    path = str(request.config.getini("trunkline_app"))
    if not path:
        raise pytest.UsageError(
            "trunkline_sandbox does not know the application: set trunkline_app = "
            '"module:variable" in the configuration of pytest, or write a fixture trunkline_app'
        )
    from trunkline.client import load  # noqa: PLC0415 - only where it is used

    return load(path)


@pytest.fixture
def trunkline_sandbox(trunkline_app: Trunkline) -> Iterator[Sandbox]:
    """A database of this test on the real engine; the application is led to it."""
    from trunkline.testing import Sandbox  # noqa: PLC0415 - only where it is used

    with Sandbox(trunkline_app) as sandbox:
        yield sandbox


@pytest.fixture
def trunkline_async_sandbox(trunkline_app: Trunkline) -> Iterator[AsyncSandbox]:
    """The same for asynchronous tests, whatever runs them."""
    from trunkline.testing import AsyncSandbox  # noqa: PLC0415 - only where it is used

    sandbox = AsyncSandbox(trunkline_app).open()
    try:
        yield sandbox
    finally:
        sandbox.close()
