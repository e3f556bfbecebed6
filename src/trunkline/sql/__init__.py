"""The engine as SQL, read from the files in this folder.

The files are shipped inside the package and never change at run time. Every function takes another
root, so that tests can load an engine of their own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from trunkline.errors import MalformedSql

__all__ = [
    "Migration",
    "Repeatable",
    "catalog_json",
    "finish_sql",
    "grants_sql",
    "migrations",
    "repeatables",
    "roles_sql",
    "supabase_grants_sql",
    "supabase_roles_sql",
]

_MIGRATION = re.compile(r"(?P<number>\d{4})_(?P<name>[a-z0-9]+(?:_[a-z0-9]+)*)(?P<file>\.sql)?")
_HEADER = re.compile(r"-- why: (?P<why>\S.*)\n-- breaking: (?P<breaking>yes|no)\n")
_REPEATABLE_FILE = re.compile(r"(?P<name>[a-z][a-z0-9_]*)\.sql")
# Functions may use each other whatever their order; views need the functions they call.
_KINDS = ("internal", "api", "views")


@dataclass(frozen=True, slots=True)
class Migration:
    """One step of the tables, applied once and never edited afterwards.

    It is a file, or a folder of files that are applied in the order of their names and count as one
    version. Each of ``files`` has a path and a text; the first one starts with the header.
    """

    number: int
    name: str
    why: str
    breaking: bool
    files: tuple[tuple[str, str], ...]
    sha256: str

    @property
    def label(self) -> str:
        """The number and the name, as in the name of the file or folder."""
        return f"{self.number:04}_{self.name}"

    @property
    def text(self) -> str:
        """The texts of all files, in order."""
        return "".join(text for _, text in self.files)


@dataclass(frozen=True, slots=True)
class Repeatable:
    """One function or view, applied again at every upgrade."""

    path: str
    kind: str
    name: str
    text: str


def migrations(root: Traversable | None = None) -> tuple[Migration, ...]:
    """The migrations in order; their numbers are 1, 2, 3, … without a gap."""
    folder = (root or _root()) / "migrations"
    entries = [entry for entry in folder.iterdir() if entry.is_dir() or _is_sql(entry)]
    found = tuple(_migration(entry) for entry in sorted(entries, key=lambda entry: entry.name))
    for expected, migration in enumerate(found, start=1):
        if migration.number != expected:
            raise MalformedSql(migration.files[0][0], f"its number should be {expected:04}")
    return found


def repeatables(root: Traversable | None = None) -> tuple[Repeatable, ...]:
    """Functions and views of all domains in the order in which they load."""
    base = root or _root()
    domains = sorted((entry for entry in base.iterdir() if entry.is_dir()), key=lambda e: e.name)
    return tuple(
        _repeatable(domain.name, kind, entry)
        for kind in _KINDS
        for domain in domains
        for entry in _sql_files(domain / kind)
    )


def roles_sql(root: Traversable | None = None) -> str:
    """What the installer runs first, as itself."""
    return _text((root or _root()) / "security" / "roles.sql")


def grants_sql(root: Traversable | None = None) -> str:
    """What the owner runs last: the grants of functions and views to roles."""
    return _text((root or _root()) / "security" / "grants.sql")


def finish_sql(root: Traversable | None = None) -> str | None:
    """What the owner runs after the grants, if the engine has such a step."""
    entry = (root or _root()) / "duties" / "finish.sql"
    return _text(entry) if entry.is_file() else None


def supabase_roles_sql(root: Traversable | None = None) -> str:
    """What the installer runs, as itself, on that platform."""
    return _text((root or _root()) / "security" / "supabase_roles.sql")


def supabase_grants_sql(root: Traversable | None = None) -> str:
    """What the owner runs after the grants on that platform."""
    return _text((root or _root()) / "security" / "supabase_grants.sql")


def catalog_json(root: Traversable | None = None) -> str:
    """The catalogue that all of this makes, as generated when it was released."""
    return _text((root or _root()) / "catalog.json")


def _root() -> Traversable:
    return files(__name__)


def _sql_files(folder: Traversable) -> Iterator[Traversable]:
    if folder.is_dir():
        entries = (entry for entry in folder.iterdir() if _is_sql(entry))
        yield from sorted(entries, key=lambda entry: entry.name)


def _is_sql(entry: Traversable) -> bool:
    return entry.name.endswith(".sql")


def _text(entry: Traversable) -> str:
    # A checkout with other line ends must not give another checksum; read_text translates them.
    return entry.read_text(encoding="utf-8")


def _migration(entry: Traversable) -> Migration:
    path = f"migrations/{entry.name}"
    named = _MIGRATION.fullmatch(entry.name)
    if named is None or (named["file"] is None) is not entry.is_dir():
        raise MalformedSql(path, "its name should be NNNN_name.sql, or NNNN_name for a folder")
    if entry.is_dir():
        files = tuple((f"{path}/{part.name}", _text(part)) for part in _sql_files(entry))
    else:
        files = ((path, _text(entry)),)
    text = "".join(text for _, text in files)
    header = _HEADER.match(text)
    if header is None:
        raise MalformedSql(
            files[0][0] if files else path,
            "its first lines should be '-- why: one sentence' and '-- breaking: yes' or 'no'",
        )
    return Migration(
        number=int(named["number"]),
        name=named["name"],
        why=header["why"].strip(),
        breaking=header["breaking"] == "yes",
        files=files,
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


def _repeatable(domain: str, kind: str, entry: Traversable) -> Repeatable:
    path = f"{domain}/{kind}/{entry.name}"
    named = _REPEATABLE_FILE.fullmatch(entry.name)
    if named is None:
        raise MalformedSql(path, "its name should be the name of its object")
    return Repeatable(path=path, kind=kind, name=named["name"], text=_text(entry))
