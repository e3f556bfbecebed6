"""Folders of packages for the rivals in Node, made when first needed and kept in a cache folder."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.rivals.environment import CACHE, EnvironmentMissing

__all__ = ["VARIABLE", "NodeEnvironment"]

# Tells the scripts where their packages are.
VARIABLE = "TRUNKLINE_BENCH_NODE_PREFIX"

_SCRIPTS = Path(__file__).parent / "node"
_INSTALL_SECONDS = 300.0


class NodeEnvironment:
    """The folder with exactly these packages, and the Node that is on the path."""

    def __init__(self, name: str, packages: Sequence[str], *, oldest_node: int) -> None:
        self._packages = list(packages)
        self._oldest_node = oldest_node
        digest = hashlib.sha256("\n".join(packages).encode()).hexdigest()[:8]
        self._folder = CACHE / f"{name}-{digest}"

    @property
    def exists(self) -> bool:
        """Whether it was made before."""
        return self._folder.exists()

    @property
    def variables(self) -> dict[str, str]:
        """What its processes need in their environment."""
        return {VARIABLE: str(self._folder)}

    def command(self, script: str, *arguments: str) -> list[str]:
        """Give the command that runs one of the scripts beside this file."""
        return [_program("node"), str(_SCRIPTS / f"{script}.mjs"), *arguments]

    def make(self) -> None:
        """Make it unless it is there; needs Node, npm and a package registry."""
        version = _node_version()
        if int(version.partition(".")[0]) < self._oldest_node:
            raise EnvironmentMissing(f"it needs Node {self._oldest_node}, this is {version}")
        if self.exists:
            return
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE / ".gitignore").write_text("*\n", encoding="ascii")
        # Under another name until it is complete, so that an interrupted run leaves nothing usable.
        unfinished = self._folder.with_suffix(f".{os.getpid()}")
        try:
            unfinished.mkdir()
            _install(unfinished, self._packages)
            unfinished.rename(self._folder)
        except OSError:
            # Another run has made it meanwhile.
            if not self.exists:
                raise
        finally:
            shutil.rmtree(unfinished, ignore_errors=True)

    def versions(self, *packages: str) -> dict[str, str]:
        """Tell which versions are in it, and that of Node."""
        found = {"node": _node_version()}
        for package in packages:
            about = self._folder / "node_modules" / package / "package.json"
            found[package] = str(json.loads(about.read_text(encoding="utf-8"))["version"])
        return found


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise EnvironmentMissing(f"there is no {name} on the path")
    return path


def _node_version() -> str:
    command = [_program("node"), "--version"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise EnvironmentMissing(f"node --version failed: {done.stderr.strip()}")
    return done.stdout.strip().removeprefix("v")


def _install(folder: Path, packages: Sequence[str]) -> None:
    options = ("--no-save", "--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts")
    command = [_program("npm"), "install", "--prefix", str(folder), *options, *packages]
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise EnvironmentMissing(
            f"npm did not install it within {_INSTALL_SECONDS:.0f} s"
        ) from None
    if done.returncode:
        raise EnvironmentMissing(f"npm install failed: {_reason(done.stderr)}")


def _reason(complaint: str) -> str:
    """Give what npm says of an error, without addresses and paths: it is part of the results."""
    lines = re.findall(r"^npm (?:error|ERR!) (.+)$", complaint, re.MULTILINE)
    told = " ".join(line for line in lines if "complete log" not in line)
    return re.sub(r"\S*/\S*", "...", told)[:300] or "it does not say why"
