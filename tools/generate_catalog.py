"""Generates sql/catalog.json: installs the schema on a throw-away server and reads it.

Any PostgreSQL from 15 to 18 gives the same file; the tests prove it on the oldest and the newest.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from trunkline import schema
from trunkline.embedded import acquire
from trunkline.schema import catalog
from trunkline.schema.session import connect

__all__ = ["generate"]

_FILE = Path(__file__).parents[1] / "src" / "trunkline" / "sql" / "catalog.json"
# The server lives for a second and nothing of it is kept.
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def generate() -> dict[Path, str]:
    """Return the file and the text it should have."""
    # A short name, because the path of a Unix socket may not be long.
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg", settings=_SETTINGS) as server,
    ):
        schema.install(server.dsn)
        with connect(server.dsn) as connection:
            return {_FILE: catalog.dump(catalog.read(connection))}


if __name__ == "__main__":
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text.splitlines())} lines")
