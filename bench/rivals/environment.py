"""Virtual environments of the rivals, created when first needed and kept in a cache folder."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["CACHE", "Environment", "EnvironmentMissing"]

CACHE = Path(os.environ.get("TRUNKLINE_BENCH_CACHE") or Path(__file__).parents[2] / ".cache/bench")

_OURS = f"{sys.version_info.major}.{sys.version_info.minor}"
# The largest take half a minute.
_INSTALL_SECONDS = 300


class EnvironmentMissing(Exception):
    """The environment could not be created; the message gives the reason."""


class Environment:
    """The environment with exactly these requirements, for this or another Python."""

    def __init__(
        self, name: str, requirements: Sequence[str], *, python_version: str = _OURS
    ) -> None:
        self._requirements = list(requirements)
        self._version = version = python_version
        digest = hashlib.sha256("\n".join([version, *requirements]).encode()).hexdigest()[:8]
        self._folder = CACHE / f"{name}-{digest}"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self._folder / "bin/python"

    @property
    def exists(self) -> bool:
        """Whether it exists."""
        return self.python.exists()

    def make(self) -> None:
        """Create it if it does not exist; needs uv and a package index."""
        if self.exists:
            return
        CACHE.mkdir(parents=True, exist_ok=True)
        # Git ignores the folder, as with environments of uv.
        (CACHE / ".gitignore").write_text("*\n", encoding="ascii")
        # Under another name until it is complete, so that an interrupted run leaves nothing usable.
        unfinished = self._folder.with_suffix(f".{os.getpid()}")
        try:
            _uv("venv", "--relocatable", "--python", _interpreter(self._version), str(unfinished))
            python = unfinished / "bin/python"
            _uv("pip", "install", "--python", str(python), *self._requirements)
            unfinished.rename(self._folder)
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def versions(self, *packages: str) -> dict[str, str]:
        """Return the versions that are in it."""
        code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
        done = subprocess.run(
            [str(self.python), "-c", code, *packages], check=True, capture_output=True, text=True
        )
        return dict(zip(packages, done.stdout.split(), strict=True))


def _interpreter(version: str) -> str:
    """Return the path of a Python of this version, or the version itself, which uv may download."""
    if version == _OURS:
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for found in (
        shutil.which(f"python{version}"),
        *pyenv.glob(f"versions/{version}.*/bin/python"),
    ):
        # The program on the path may be a shim of pyenv, which only prints what to install.
        if found and not subprocess.run([found, "-V"], check=False, capture_output=True).returncode:
            return str(found)
    return version


def _uv(*arguments: str) -> None:
    command = [sys.executable, "-m", "uv", "--quiet", *arguments]
    what = f"uv {' '.join(arguments[:2])}"
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentMissing(f"{what} took more than {_INSTALL_SECONDS} s") from None
    if done.returncode:
        raise EnvironmentMissing(f"{what} failed: {done.stderr.strip()}")
