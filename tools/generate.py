"""Writes every generated file (`make generate`), or with --check lists the stale ones."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools import (
    async_to_sync,
    generate_catalog,
    generate_docs,
    generate_job_row,
    generate_openapi,
    generate_reference,
    generate_requirements,
)

_ROOT = Path(__file__).parents[1]
# In this order, because the reference is generated from the catalogue, and that from the SQL.
_GENERATORS: tuple[Callable[[], Mapping[Path, str | None]], ...] = (
    generate_job_row.generate,
    async_to_sync.generate,
    generate_catalog.generate,
    generate_docs.generate,
    generate_reference.generate,
    generate_requirements.generate,
    generate_openapi.generate,
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    check = parser.parse_args().check
    stale = 0
    for generate in _GENERATORS:
        for path, wanted in generate().items():
            found = path.read_text(encoding="utf-8") if path.exists() else None
            if found == wanted:
                continue
            stale += 1
            name = path.relative_to(_ROOT).as_posix()
            print(_difference(name, found or "", wanted or "") if check else _write(path, wanted))
    if check and stale:
        print(f"{stale} generated files are stale; run: make generate", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, wanted: str | None) -> str:
    name = path.relative_to(_ROOT).as_posix()
    if wanted is None:
        path.unlink()
        return f"{name} removed"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(wanted, encoding="utf-8")
    return f"{name} written"


def _difference(name: str, found: str, wanted: str) -> str:
    lines = difflib.unified_diff(
        found.splitlines(), wanted.splitlines(), name, f"{name} (generated)", lineterm="", n=1
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
