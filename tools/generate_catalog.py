"""Generates the catalogues of engine and profiles: installs them on a throw-away server.

Any PostgreSQL from 15 to 18 gives the same file; the tests prove it on the oldest and the newest.
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
# Profiles grant to the roles of a platform where it has them.
_PLATFORM = "create role anon; create role authenticated; create role service_role"
# The server lives for a second and nothing of it is kept.
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def generate() -> dict[Path, str]:
    """Return the files and the text they should have."""
    # A short name, because the path of a Unix socket may not be long.
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
