"""Errors of the schema in a database, and of its files in the package."""

from trunkline.errors.base import Refusal, TrunklineError


class SchemaError(TrunklineError):
    """An error of the schema in a database, or of its files in the package."""

    code = "schema_error"


class InstallationRefused(SchemaError, Refusal):
    """The server, a role or the installer's privileges do not allow the installation."""

    code = "installation_refused"
    http_status = 500

    @property
    def reason(self) -> str:
        """The name of the refusal, such as server_too_old or installer_lacks_right."""
        return self.code


class ForeignSchema(InstallationRefused):
    """A schema named trunkline or trunkline_internal belongs to another role."""

    code = "foreign_schema"
    sqlstate = "TL092"


class InstallerLacksRight(InstallationRefused):
    """The installer lacks a privilege that the installation needs."""

    code = "installer_lacks_right"
    sqlstate = "TL090"


class PlatformRolesMissing(InstallationRefused):
    """The roles of the platform, such as Supabase, do not exist."""

    code = "platform_roles_missing"
    sqlstate = "TL094"


class SchemaVersionMismatch(InstallationRefused):
    """A printed script starts from another version than the database has."""

    code = "schema_version_mismatch"
    sqlstate = "TL093"


class ServerTooOld(InstallationRefused):
    """The server is older than PostgreSQL 15."""

    code = "server_too_old"
    sqlstate = "TL013"


class UnsafeRole(InstallationRefused):
    """A role of Trunkline has attributes that bypass row-level security and grants."""

    code = "unsafe_role"
    sqlstate = "TL091"


class MalformedSql(SchemaError):
    """A shipped SQL file has a wrong name or header."""

    code = "malformed_sql"
    hint = "The package is damaged or was edited: pip install --force-reinstall trunkline"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class MigrationChanged(SchemaError):
    """The text of an applied migration differs from the shipped one."""

    code = "migration_changed"
    hint = (
        "Released migrations never change. Use the package that installed this schema, or a newer "
        "release. If a development version installed it, remove it with trunkline schema uninstall "
        "and run trunkline schema install."
    )

    def __init__(self, migration: str, *, applied: str, shipped: str) -> None:
        super().__init__(
            f"Migration {migration} was applied with checksum {applied[:12]}; "
            f"the shipped one has {shipped[:12]}"
        )
        self.migration = migration


class SchemaChangeFailed(SchemaError):
    """A statement of an installation, upgrade or uninstallation failed; nothing was changed."""

    code = "schema_change_failed"
    hint = "Nothing was changed: all statements run in one transaction."

    def __init__(self, step: str, problem: str, *, line: int | None = None) -> None:
        place = step if line is None else f"{step}, line {line}"
        super().__init__(f"{place}: {problem}")
        self.step = step
        self.line = line


class SchemaForbidden(SchemaError):
    """The role of this connection may not use the schema."""

    code = "schema_forbidden"
    hint = (
        "Ask an administrator to grant it the role it needs: grant trunkline_worker to NAME; The "
        "roles are trunkline_producer, trunkline_worker, trunkline_operator, trunkline_reader."
    )


class SchemaInUse(SchemaError):
    """Your own objects, or profiles, depend on the schema."""

    code = "schema_in_use"
    hint = (
        "Drop or change them first, and roll back profiles with: trunkline profile rollback NAME. "
        "Or pass --cascade: it also drops these objects, and profiles stop working."
    )


class SchemaLocked(SchemaError):
    """A lock that the change needs was not free within the lock timeout."""

    code = "schema_locked"
    hint = (
        "Nothing was changed. Find the session in pg_stat_activity: another installation, or an "
        "old transaction. Wait for it or end it, or wait longer with --lock-timeout 60."
    )


class SchemaMissing(SchemaError):
    """There is no Trunkline schema in this database."""

    code = "schema_missing"
    hint = "Create it with: trunkline schema install"


class SchemaNewerThanClient(SchemaError, Refusal):
    """The schema no longer supports a client as old as this one."""

    code = "schema_newer_than_client"
    exit_code = 4
    sqlstate = "TL014"
    http_status = 500
    hint = "Upgrade the trunkline package to the version that installed the schema, or newer."


class SchemaOlderThanClient(SchemaError):
    """The schema is too old for this client."""

    code = "schema_older_than_client"
    hint = "Upgrade it with: trunkline schema upgrade"


class SchemaPredatesBaseline(SchemaError, Refusal):
    """The schema was installed before the baseline, and no migration leads from there to it."""

    code = "schema_predates_baseline"
    sqlstate = "TL095"
    http_status = 500
    hint = (
        "Embedded server: trunkline db reset moves its data aside. Your own server: finish the jobs"
        " with the package that installed the schema, then run trunkline schema uninstall and"
        " trunkline schema install."
    )
