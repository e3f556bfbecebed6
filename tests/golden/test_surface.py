"""The public surface is as the golden files have it: nothing changes there unnoticed.

The files are in tests/golden/surface, one fact per line, and are written by an explicit command
alone. A difference is deliberate, or it is a mistake that a user would have found.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.golden import comparing, reading
from tests.support import servers
from tests.support.servers import Server
from trunkline import profiles


def compare(name: str, lines: Iterable[str]) -> None:
    """Fail with the lines that differ: - for the golden file, + for the product."""
    if changed := comparing.difference(name, lines):
        pytest.fail(f"{changed}\n\nIf this is meant: {comparing.WRITE}", pytrace=False)


@pytest.mark.parametrize("name", reading.ON_A_SERVER)
def test_an_installed_product_has_the_surface(server: Server, name: str) -> None:
    compare(name, reading.ON_A_SERVER[name](server))


def test_the_profiles_have_their_outer_names(server: Server) -> None:
    found = reading.sql_of_profiles(server)
    assert set(found) == {f"sql-{name}" for name in profiles.NAMES}
    for name, lines in found.items():
        compare(name, lines)


def test_commands_print_the_same_keys(server: Server) -> None:
    if server.major != servers.majors()[-1]:
        pytest.skip("the command line is the same on every server; the newest is enough")
    compare("json", reading.newest(server))


@pytest.mark.parametrize("name", reading.SOURCES)
def test_the_package_has_the_surface(name: str) -> None:
    compare(name, reading.SOURCES[name]())


def test_every_golden_file_is_compared() -> None:
    compared = {*reading.ON_A_SERVER, *reading.SOURCES, "json"}
    compared |= {f"sql-{name}" for name in profiles.NAMES}
    assert {path.stem for path in comparing.FOLDER.iterdir()} == compared
