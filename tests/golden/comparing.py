"""The golden files: where they are, and how an installed product differs from them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = ["FOLDER", "WRITE", "difference", "text", "write"]

FOLDER = Path(__file__).parent / "surface"
WRITE = "python -m tests.golden --write"


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def difference(name: str, lines: Iterable[str]) -> str:
    """Return what the product has more (+) or less (-) than the golden file; empty if equal."""
    path = FOLDER / f"{name}.txt"
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    found = difflib.unified_diff(
        golden.splitlines(),
        text(lines).splitlines(),
        f"tests/golden/surface/{name}.txt",
        "the product",
        lineterm="",
        n=0,
    )
    return "\n".join(line for line in found if not line.startswith("@@"))


def write(name: str, lines: Iterable[str]) -> str:
    """Write a golden file and return what changed in it."""
    kept = list(lines)
    changed = difference(name, kept)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.txt").write_text(text(kept), encoding="utf-8")
    return changed
