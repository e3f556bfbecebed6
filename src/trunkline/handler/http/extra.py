"""The extra `http`, which brings httpx2."""

from __future__ import annotations

from importlib.util import find_spec

from trunkline.errors import HttpNotInstalled

__all__ = ["require_httpx2"]


def require_httpx2() -> None:
    """Raise HttpNotInstalled if httpx2 cannot be imported."""
    if find_spec("httpx2") is None:
        raise HttpNotInstalled("ctx.http needs the package httpx2")
