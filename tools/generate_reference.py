"""Generates docs/reference from code, catalogue and help texts."""

from __future__ import annotations

from pathlib import Path

from tools import (
    generate_reference_cli,
    generate_reference_engine,
    generate_reference_errors,
    generate_reference_python,
    generate_reference_sql,
)

__all__ = ["generate"]

_PARTS = (
    generate_reference_sql.generate,
    generate_reference_engine.generate,
    generate_reference_errors.generate,
    generate_reference_cli.generate,
    generate_reference_python.generate,
)


def generate() -> dict[Path, str | None]:
    """Return every page with the text it should have; None for a page that should not exist."""
    pages: dict[Path, str | None] = {}
    for part in _PARTS:
        pages.update(part())
    return pages
