"""What a measure gives: named numbers, some with a goal."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``key`` is its name in the JSON object, ``text`` what it means to a reader."""

    key: str
    value: float
    text: str
    unit: str = ""
    goal: float | None = None
    better: Literal["at least", "at most"] = "at least"

    @property
    def verdict(self) -> str:
        """Say whether the goal is met; empty without one."""
        if self.goal is None:
            return ""
        if self.better == "at least":
            return "met" if self.value >= self.goal else "MISSED"
        return "met" if self.value <= self.goal else "MISSED"
