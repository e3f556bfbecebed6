"""Errors while saving a database to a file, or loading such a file into another server."""

from trunkline.errors.base import TrunklineError


class BackupError(TrunklineError):
    """An error while saving a database to a file, or loading it."""

    code = "backup_error"


class BackupFailed(BackupError):
    """pg_dump or pg_restore stopped with an error; no file was written, or nothing was loaded."""

    code = "backup_failed"
    hint = "Nothing was changed. The message above comes from that program."


class BackupFileExists(BackupError):
    """The file to write exists already."""

    code = "backup_file_exists"
    hint = "Choose another name, or replace it with --force."


class BackupHidesRows(BackupError):
    """Row-level security hides rows from the role, so that the backup would be incomplete."""

    code = "backup_hides_rows"
    hint = (
        "Connect as a superuser or a role with BYPASSRLS. For the tables of Trunkline, a member of "
        "trunkline_owner is enough."
    )


class BackupProgramsMissing(BackupError):
    """There is no pg_dump or pg_restore that is new enough for the server."""

    code = "backup_programs_missing"
    hint = (
        "Install the client programs of that PostgreSQL version (on Debian: postgresql-client-18), "
        "or set TRUNKLINE_PG_BINDIR to a folder that has them."
    )


class BackupUnreadable(BackupError):
    """The file was not written by ``trunkline db backup``, or it is damaged."""

    code = "backup_unreadable"
    hint = (
        "Use a file written by `trunkline db backup`. Load a plain dump with pg_restore: see the "
        "page on backups."
    )


class RestoreIncomplete(BackupError):
    """After the restore, the row counts differ from those in the backup."""

    code = "restore_incomplete"
    hint = (
        "Stop workers and applications that use the target, and restore into a new database. If "
        "nothing else uses it, keep the file and report this."
    )


class RestoreRefused(BackupError):
    """The target is an older server, or lacks an extension or a privilege."""

    code = "restore_refused"


class RestoreTargetNotEmpty(BackupError):
    """The database to restore into already has objects."""

    code = "restore_target_not_empty"
    hint = (
        "Restore into a new database: create one and pass it with --dsn, or set TRUNKLINE_HOME to "
        "a new folder for another embedded server."
    )
