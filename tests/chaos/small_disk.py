"""A disk that can be filled and freed: a small file system in memory."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["SmallDisk", "mounted"]

_MEGABYTE = 1024 * 1024


class SmallDisk:
    """A mounted file system of so many megabytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, but_bytes: int = 0) -> None:
        """Take all the space that is left, or leave a little."""
        while True:
            state = os.statvfs(self.path)
            free = state.f_bavail * state.f_frsize - but_bytes
            if free < state.f_frsize:
                return
            with self._ballast.open("ab") as file:
                file.write(b"\0" * min(free, _MEGABYTE))

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)


@contextmanager
def mounted(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount it, which takes root; without, the test is skipped."""
    path.mkdir(mode=0o700)
    result = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=0700", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {result.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        # Lazily: a server that is only just gone must not fail the test.
        subprocess.run(["/bin/umount", "--lazy", str(path)], check=False)
