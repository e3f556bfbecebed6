"""Fixtures for the tests of all profiles."""

from collections.abc import Iterator

import pytest

from tests.support.platform_roles import platform_server as running_platform
from tests.support.servers import Server


@pytest.fixture(scope="session")
def platform_server(server: Server) -> Iterator[Server]:
    """A server of the same version that has the roles of a platform."""
    with running_platform(server) as started:
        yield started
