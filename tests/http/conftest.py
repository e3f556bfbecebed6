"""A server for each module, whose database its tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.site import Api, Site
from tests.support import databases
from tests.support.servers import Server


@pytest.fixture(scope="module")
def site(server: Server, template: str) -> Iterator[Site]:
    with databases.fresh(server, template) as database:
        made = Site.create(database)
        yield made
        made.drop_roles()


@pytest.fixture
def api(site: Site) -> Iterator[Api]:
    made = Api(site)
    yield made
    made.close()
