"""The package of another commit, from the history of this repository, kept in the cache."""

import os
import shutil
import subprocess
import tarfile
from io import BytesIO

from bench.rivals.environment import CACHE
from bench.rivals.product import ROOT

__all__ = ["CommitMissing", "Version", "check_out"]


class CommitMissing(Exception):
    """The commit is not available; the message gives the reason."""


class Version:
    """A commit and the folder that holds its package."""

    def __init__(self, commit: str) -> None:
        self.commit = commit
        self.sources = CACHE / f"before-{commit[:12]}" / "src"


def check_out(revision: str) -> Version:
    """Extract the package of a commit, branch or tag, unless an earlier run has."""
    name = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if name is None:
        raise CommitMissing(
            f"{revision!r} is not a commit of this repository. Name one that `git log` shows; "
            "in a shallow clone, run `git fetch --unshallow` first."
        )
    version = Version(name.decode().strip())
    if not version.sources.exists():
        _extract(version)
    return version


def _extract(version: Version) -> None:
    archive = _git("archive", version.commit, "src/trunkline")
    if archive is None:
        raise CommitMissing(f"Commit {version.commit[:12]} has no folder src/trunkline.")
    folder = version.sources.parent
    # Under another name until it is complete, so that an interrupted run leaves nothing usable.
    unfinished = folder.with_suffix(f".{os.getpid()}")
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n", encoding="ascii")
    try:
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(unfinished, filter="data")
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _git(*arguments: str) -> bytes | None:
    """Return what git prints, or None if it fails."""
    program = shutil.which("git")
    if program is None:
        raise CommitMissing("git is not installed; it is needed to extract the other version.")
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, check=False)
    return None if done.returncode else done.stdout
