"""The programs of the host that read documents, and calls of them.

A worker searches for them when it starts, and does not claim jobs that need a missing one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trunkline_profiles.clinical.handlers import bounded
from trunkline_profiles.clinical.handlers.bounded import Limits
from trunkline_profiles.clinical.handlers.problems import BadDocument

__all__ = ["Tools", "find_tools", "run"]

# For one page of one document.
_LIMITS: Final = Limits(cpu=120, wall=600.0, memory=2048)
# Bytes; a page full of small print has some hundred thousand.
_MOST_PRINTED: Final = 16 << 20
_LANGUAGE: Final = "eng"
# The variables of the worker's environment that programs get. Others contain keys of providers and
# the database's address, and these programs read untrusted documents.
_PASSED_ON: Final = ("PATH", "HOME", "LANG", "LC_", "TMPDIR", "MAGICK_", "TESSDATA_", "FONTCONFIG_")


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the programs; None: not on this host."""

    magick: str | None = None
    pdftoppm: str | None = None
    tesseract: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that must be installed."""
        names = {"ImageMagick": self.magick, "poppler": self.pdftoppm, "tesseract": self.tesseract}
        return tuple(name for name, place in names.items() if place is None)


def find_tools() -> Tools:
    """Find them, and run each for its version, because a file name alone proves little."""
    return Tools(
        magick=_asked("magick", "-version", "ImageMagick")
        or _asked("convert", "-version", "ImageMagick"),
        pdftoppm=_asked("pdftoppm", "-v", "pdftoppm"),
        # Without the language's data it cannot read text.
        tesseract=_asked("tesseract", "--list-langs", _LANGUAGE),
    )


def _asked(name: str, question: str, word: str) -> str | None:
    place = shutil.which(name)
    if place is None:
        return None
    try:
        answer = subprocess.run(
            [place, question], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    known = answer.returncode == 0 and word in answer.stdout + answer.stderr
    return place if known else None


async def run(command: Sequence[str | Path], *, folder: Path, limits: Limits = _LIMITS) -> bytes:
    """Run a program to its end and return its output.

    Raises BadDocument if the program crashes or reaches a limit: the document is the cause.
    """
    name = Path(command[0]).name
    ended = await bounded.run(command, folder=folder, limits=limits, environment=_environment())
    if ended.over_limits is not None:
        raise BadDocument(f"over_limits: {name} took more than {ended.over_limits}")
    if ended.code != 0:
        raise BadDocument(f"{name} ended with {ended.code}: {ended.complaint}")
    if len(ended.printed) > _MOST_PRINTED:
        raise BadDocument(f"{name} printed more than {_MOST_PRINTED} bytes")
    return ended.printed


def _environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name.startswith(_PASSED_ON)}
    # One core per page, because the worker reads several pages at once.
    return variables | {"OMP_THREAD_LIMIT": "1", "MAGICK_THREAD_LIMIT": "1"}
