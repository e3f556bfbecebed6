"""Runs transfers in a separate process, on a folder that is removed afterwards."""

import json
import os
import subprocess
import sys
import tempfile
from typing import Any

from bench.place import Place
from bench.rivals.product import ROOT

__all__ = ["transfer"]

_LONGEST = 1800.0


def transfer(place: Place, action: str, *numbers: int) -> dict[str, Any]:
    """Return what the process printed. TMPDIR chooses the disk."""
    with tempfile.TemporaryDirectory(prefix="trunkline-bench-") as folder:
        command = [sys.executable, "-m", "bench.apps.transfers", action, folder]
        done = subprocess.run(
            [*command, *(str(number) for number in numbers)],
            check=False,
            cwd=ROOT,
            env={**os.environ, **place.python_path},
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
    if done.returncode:
        raise RuntimeError(f"{action} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
