"""A private copy of the project with its own interpreter; the user's tree is only read."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tools.mutants.mutation import Mutation
from tools.mutants.project import Project

__all__ = ["Workspace", "WorkspaceError", "digest", "listed"]

_WITNESS = Path(__file__).with_name("witness.py")


class WorkspaceError(Exception):
    """The copy cannot be used; the message gives the reason."""


class Workspace:
    """A copy in the system's temporary folder. Use it as a context manager."""

    def __init__(self, project: Project, stopped: threading.Event | None = None) -> None:
        self.project = project
        # Set when the user interrupts the run.
        self.stopped = stopped or threading.Event()
        self._folder = Path(tempfile.mkdtemp(prefix="mutants-"))
        # Tests run programs with other accounts, which must be able to read the copy.
        self._folder.chmod(0o755)
        self.root = self._folder / "tree"
        self.reports = self._folder / "reports"
        self.python = self.root / ".venv" / "bin" / "python"

    def __enter__(self) -> Self:
        try:
            self._fill()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the tests, without those that lead back to the user's tree."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRUNKLINE_", "PYTEST_", "PYTHON", "VIRTUAL_ENV", "MAKE"))
        }
        path = os.pathsep.join([str(self.python.parent), kept.get("PATH", "")])
        plugins = {"PYTHONPATH": str(self._folder / "plugins"), "PATH": path}
        return kept | dict(self.project.environment) | plugins

    @contextmanager
    def mutated(self, mutation: Mutation) -> Iterator[None]:
        """Apply a mutation to the copy; restore the file and what checks wrote afterwards."""
        names = [mutation.path, *self.project.written]
        originals = {self.root / name: (self.root / name).read_bytes() for name in names}
        file = self.root / mutation.path
        file.write_text(mutation.apply(file.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            yield
        finally:
            for path, content in originals.items():
                path.write_bytes(content)

    def _fill(self) -> None:
        for name in listed(self.project.root):
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.project.root / name, target, follow_symlinks=False)
        plugins = self._folder / "plugins"
        plugins.mkdir()
        self.reports.mkdir()
        shutil.copy(_WITNESS, plugins / "mutants_witness.py")
        self._make_interpreter()
        # Bytecode is validated by the hash of its source, because many mutants have the same size
        # and modification time.
        compiling = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "."]
        self.run([*compiling, "-x", r"\.venv"])
        self._require_own_package()

    def run(self, arguments: list[str]) -> subprocess.CompletedProcess[str]:
        """Run the copy's interpreter in the copy."""
        return subprocess.run(
            [str(self.python), *arguments],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def _make_interpreter(self) -> None:
        """Create a virtual environment that finds the copy first and then our dependencies.

        Python searches a path from a .pth file, but does not read .pth files in it. So the editable
        install of the user's tree has no effect.
        """
        folder = self.root / ".venv"
        venv.create(folder, symlinks=True)
        ours = Path(sysconfig.get_path("purelib"))
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        paths = [*(self.root / name for name in self.project.source_folders), ours]
        lines = "".join(f"{path}\n" for path in paths)
        (folder / "lib" / version / "site-packages" / "mutants.pth").write_text(lines)
        for script in Path(sys.executable).parent.iterdir():
            target = folder / "bin" / script.name
            if script.is_file() and not target.exists():
                _copy_script(script, target, self.python)

    def _require_own_package(self) -> None:
        package = self.project.package
        found = self.run(["-c", f"import {package}; print({package}.__file__)"])
        expected = str(self.root / "src" / package)
        if not found.stdout.startswith(expected):
            raise WorkspaceError(
                f"The copy imports {package} from {found.stdout.strip() or found.stderr.strip()}, "
                f"not from {expected}"
            )


def listed(root: Path) -> list[str]:
    """The files of the working tree that git tracks or would add, in their current state."""
    command = ["git", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in set(names) if name and (root / name).is_file())


def digest(root: Path, *folders: str) -> str:
    """A hash of the files in these folders, which identifies what a result applies to."""
    total = hashlib.sha256()
    for name in listed(root):
        if name.startswith(tuple(f"{folder}/" for folder in folders)):
            content = hashlib.sha256((root / name).read_bytes()).hexdigest()
            total.update(f"{name}\0{content}\n".encode())
    return total.hexdigest()[:16]


def _copy_script(script: Path, target: Path, python: Path) -> None:
    """Copy a program of our environment; a script gets the copy's interpreter."""
    content = script.read_bytes()
    head, _, rest = content.partition(b"\n")
    if head.startswith(b"#!") and b"python" in head:
        target.write_bytes(f"#!{python}\n".encode() + rest)
        target.chmod(0o755)
    else:
        target.symlink_to(script)
