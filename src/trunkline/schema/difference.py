"""One difference between a database and the shipped schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Difference"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between a database and the shipped schema."""

    change: Literal["missing", "extra", "changed"]
    kind: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.change} {self.kind} {self.name}" + (
            f": {self.detail}" if self.detail else ""
        )
