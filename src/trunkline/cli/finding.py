"""One line of the doctor's report."""

from __future__ import annotations

from typing import Literal, NamedTuple

__all__ = ["Finding"]


class Finding(NamedTuple):
    """One line."""

    check: str
    level: Literal["ok", "warn", "fail"]
    message: str
    hint: str | None = None
