"""Generates the catalogues of engine and profiles by installing them on a temporary server.

PostgreSQL 15 to 18 give the same file; tests check this on the oldest and the newest version.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from trunkline import profiles, schema
from trunkline.embedded import acquire
from trunkline.schema import catalog
from trunkline.schema.session import connect

__all__ = ["generate"]

_PACKAGE = Path(__file__).parents[1] / "src" / "trunkline"
# Profiles grant privileges to a platform's roles if they exist.
_PLATFORM = "create role anon; create role authenticated; create role service_role"
# The server runs for a second, and its data is discarded.
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def generate() -> dict[Path, str]:
    """Return the files and the text they should have."""
    # A short name, because paths of Unix sockets are limited.
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg", settings=_SETTINGS) as server,
    ):
        schema.install(server.dsn)
        with connect(server.dsn) as connection:
            texts = {_PACKAGE / "sql" / "catalog.json": catalog.dump(catalog.read(connection))}
            connection.execute(_PLATFORM)
        for name in profiles.names():
            profile = profiles.get(name)
            profiles.install(server.dsn, profile, [phase.name for phase in profile.phases])
            file = Path(str(profile.root)) / "catalog.json"
            texts[file] = profiles.catalogue(server.dsn, profile)
        return texts


if __name__ == "__main__":
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text.splitlines())} lines")
