"""The public surface is as the golden files have it: nothing changes there unnoticed.

The files are in tests/golden/surface, one fact per line, and are written by an explicit command
alone. A difference is deliberate, or it is a mistake that a user would have found.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.golden import comparing, reading, sql_objects
from tests.support import servers
from tests.support.databases import Database
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
    assert set(found) == {f"sql-{name}" for name in profiles.names()}
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
    compared |= {f"sql-{name}" for name in profiles.names()}
    assert {path.stem for path in comparing.FOLDER.iterdir()} == compared


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (
            "revoke execute on function trunkline.cancel from trunkline_producer",
            ["-function cancel: grant execute to trunkline_producer"],
        ),
        (
            "grant select on trunkline.jobs to public",
            ["+view jobs: grant select to public"],
        ),
        (
            "alter function trunkline.cancel security invoker",
            [
                (
                    "-function cancel: is volatile, security definer, called on null,"
                    " parallel unsafe, owner trunkline_owner"
                ),
                (
                    "+function cancel: is volatile, security invoker, called on null,"
                    " parallel unsafe, owner trunkline_owner"
                ),
            ],
        ),
        (
            "alter function trunkline.cancel set jit = off",
            ["+function cancel: set jit=off"],
        ),
        (
            (
                "alter type trunkline.changed_job drop attribute outcome,"
                " add attribute outcome text cascade"
            ),
            [
                "+type changed_job: attribute state text",
                "-type changed_job: attribute state text",
            ],
        ),
        (
            "alter view trunkline.throughput rename column queue to line",
            ["-view throughput: column queue text", "+view throughput: column line text"],
        ),
    ],
    ids=["right", "public", "definer", "setting", "order", "name"],
)
def test_a_change_is_shown_as_lines(database: Database, change: str, shown: list[str]) -> None:
    superuser = database.superuser()
    superuser.execute(change.encode())
    changed = comparing.difference("sql", sql_objects.lines(superuser, "trunkline"))
    # Without the two lines that name the files.
    assert changed.splitlines()[2:] == shown
