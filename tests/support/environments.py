"""A clean environment outside the checkout: third-party packages, but none of this repository.

Nothing is downloaded: the third-party packages are those of the environment that runs the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

__all__ = ["ROOT", "Environment", "build"]

ROOT = Path(__file__).resolve().parents[2]
_HERE = Path(sysconfig.get_path("purelib"))


def build(folder: Path, target: Path, *kinds: str) -> list[Path]:
    """Build a distribution as `wheel` and `sdist`, or only one of them; return the new files."""
    options = [word for kind in kinds or ("wheel", "sdist") for word in ("-t", kind)]
    old_files = set(target.iterdir()) if target.exists() else set()
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", *options, "-d", str(target)],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return sorted(set(target.iterdir()) - old_files)


class Environment:
    """A virtual environment with pip, which downloads nothing."""

    def __init__(self, folder: Path) -> None:
        self.binaries = folder / "bin"
        self.python = self.binaries / "python"
        venv.create(folder, symlinks=True)
        others = folder / "others"
        others.mkdir()
        for entry in _HERE.iterdir():
            # Leave out our packages, and the .pth files of editable installs.
            if "trunkline" not in entry.name and entry.suffix != ".pth":
                (others / entry.name).symlink_to(entry)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        site = folder / "lib" / version / "site-packages"
        (site / "others.pth").write_text(f"{others}\n", encoding="utf-8")
        for module in ("pip", "pytest"):
            script = self.binaries / module
            script.write_text(f'#!/bin/sh\nexec "{self.python}" -m {module} "$@"\n')
            script.chmod(0o755)

    @property
    def variables(self) -> dict[str, str]:
        """Variables of a shell in which the environment is active."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRUNKLINE_", "PYTEST_", "PYTHON", "PIP_", "VIRTUAL_ENV"))
        }
        return kept | {
            "PATH": os.pathsep.join([str(self.binaries), os.environ["PATH"]]),
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_INDEX": "1",
            # With 0, pip builds with the installed backend.
            "PIP_NO_BUILD_ISOLATION": "0",
        }

    def install(self, *wheels: Path) -> None:
        self.run("pip", "install", "--quiet", *map(str, wheels), check=True)

    def run(
        self, program: str, *arguments: str, **options: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment outside the checkout."""
        return subprocess.run(
            [str(self.binaries / program), *arguments],
            env=self.variables | options.pop("env", {}),
            cwd=options.pop("cwd", self.binaries),
            capture_output=True,
            text=True,
            check=options.pop("check", False),
            timeout=500,
            **options,
        )
