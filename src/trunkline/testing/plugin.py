"""Fixtures for pytest, which finds them through the entry point of the package.

Name the application in the configuration of pytest,

    [tool.pytest.ini_options]
    trunkline_app = "shop.jobs:app"

or write a fixture `trunkline_app`. pytest-xdist is supported: its processes share one server.
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
    """Use the shared server in a process of pytest-xdist."""
    home = getattr(config, "workerinput", {}).get(_HOME)
    if home is not None:
        from trunkline.testing import server  # noqa: PLC0415 - only where it is used

        server.share(Path(home))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the folder of the shared server to a process of pytest-xdist."""
    stash = node.config.stash
    if _FOLDER not in stash:
        stash[_FOLDER] = Path(tempfile.mkdtemp(prefix="trunkline-sandbox-"))
    node.workerinput[_HOME] = str(stash[_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the server if this process has started it."""
    server = sys.modules.get("trunkline.testing.server")
    if server is not None:
        server.leave()
    if _FOLDER in config.stash:
        shutil.rmtree(config.stash[_FOLDER], ignore_errors=True)


@pytest.fixture
def trunkline_app(request: pytest.FixtureRequest) -> Trunkline:
    """The application under test; override it, or set trunkline_app in the configuration."""
    path = str(request.config.getini("trunkline_app"))
    if not path:
        raise pytest.UsageError(
            "trunkline_sandbox needs an application: set trunkline_app = "
            '"module:variable" in the configuration of pytest, or write a fixture trunkline_app'
        )
    from trunkline.client import load  # noqa: PLC0415 - only where it is used

    return load(path)


@pytest.fixture
def trunkline_sandbox(trunkline_app: Trunkline) -> Iterator[Sandbox]:
    """A database for this test on the real engine, to which the application is connected."""
    from trunkline.testing import Sandbox  # noqa: PLC0415 - only where it is used

    with Sandbox(trunkline_app) as sandbox:
        yield sandbox


@pytest.fixture
def trunkline_async_sandbox(trunkline_app: Trunkline) -> Iterator[AsyncSandbox]:
    """The same for asynchronous tests, with any plugin that runs them."""
    from trunkline.testing import AsyncSandbox  # noqa: PLC0415 - only where it is used

    sandbox = AsyncSandbox(trunkline_app).open()
    try:
        yield sandbox
    finally:
        sandbox.close()
