"""Installs the engine and the named profiles on a temporary server; writes the catalogue.

A mutated engine gets a matching catalogue, so a different hash does not count as a failed test.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from trunkline import profiles, schema
from trunkline.embedded import acquire
from trunkline.profiles import installer
from trunkline.schema import catalog
from trunkline.schema.session import connect

_FILE = Path(__file__).parents[2] / "src" / "trunkline" / "sql" / "catalog.json"
# The server runs for a second, and its data is discarded.
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


def main() -> None:
    # A short name, because paths of Unix sockets are limited.
    with (
        tempfile.TemporaryDirectory(prefix="trunkline-") as folder,
        acquire(Path(folder) / "pg", settings=_SETTINGS) as server,
    ):
        schema.install(server.dsn)
        with connect(server.dsn) as connection:
            text = catalog.dump(catalog.read(connection))
        for name in sys.argv[1:]:
            profile = profiles.get(name)
            installer.install(server.dsn, profile, [phase.name for phase in profile.phases])
    _FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
