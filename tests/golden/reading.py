"""Each golden file by its name, and how its lines are read from a server."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.golden import channels, command_lines, errors, json_keys, python_names, sql_objects
from tests.golden import words as vocabulary
from tests.golden.story import Story
from tests.support import databases, servers
from tests.support.databases import Database
from tests.support.platform_roles import platform_server
from tests.support.servers import Server
from trunkline import profiles
from trunkline.embedded import stop
from trunkline.profiles import installer

__all__ = ["ON_A_SERVER", "SOURCES", "newest", "sql_of_profiles"]


def sql(server: Server) -> list[str]:
    """Schema trunkline, as an installation leaves it."""
    with _database(server) as database:
        return list(sql_objects.lines(database.connect(), "trunkline"))


def settings(server: Server) -> list[str]:
    """Settings, duties, states and transitions, which are rows of an installation."""
    with _database(server) as database:
        return list(vocabulary.written(database.connect("trunkline_operator")))


def words(server: Server) -> list[str]:
    """The words that callers meet while jobs go through everything."""
    with _database(server) as database:
        story = Story(database)
        story.play()
        return list(vocabulary.told(story))


def notified(server: Server) -> list[str]:
    with _database(server) as database:
        install(database.dsn, "executor")
        return list(channels.lines(database))


def sql_of_profiles(server: Server) -> dict[str, list[str]]:
    """Each profile's schema on a server with a platform's roles, to which profiles grant."""
    with platform_server(server) as platform, _database(platform) as database:
        found = {}
        for name in profiles.names():
            install(database.dsn, name)
            schema = profiles.get(name).schema
            found[f"sql-{name}"] = list(sql_objects.lines(database.connect(), schema))
        return found


def newest(server: Server) -> list[str]:
    """What commands print with --json; the same on every server."""
    # A short path, because that of a Unix socket may not be long.
    folder = Path(tempfile.mkdtemp(prefix="trunkline-", dir=servers.memory()))
    try:
        with _database(server) as database:
            story = Story(database)
            story.play()
            return list(json_keys.lines(story, folder))
    finally:
        stop(folder / "home", force=True)
        shutil.rmtree(folder)


def install(dsn: str, name: str) -> None:
    profile = profiles.get(name)
    installer.install(dsn, profile, [phase.name for phase in profile.phases])


@contextmanager
def _database(server: Server) -> Iterator[Database]:
    with databases.fresh(server, databases.ensure_template(server)) as database:
        yield database


# What each server must have in the same way.
ON_A_SERVER: dict[str, Callable[[Server], list[str]]] = {
    "channels": notified,
    "settings": settings,
    "sql": sql,
    "words": words,
}
# What is read from the package alone.
SOURCES: dict[str, Callable[[], Iterator[str]]] = {
    "cli": command_lines.lines,
    "errors": errors.lines,
    "python": python_names.lines,
}
