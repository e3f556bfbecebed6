"""The results of a measure: named numbers, some with a goal."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """One number. ``key`` is its name in the JSON object, ``text`` its description."""

    key: str
    value: float
    text: str
    unit: str = ""
    goal: float | None = None
    better: Literal["at least", "at most"] = "at least"

    @property
    def verdict(self) -> str:
        """Whether the goal is met, as a word; empty if there is no goal."""
        if self.goal is None:
            return ""
        if self.better == "at least":
            return "met" if self.value >= self.goal else "MISSED"
        return "met" if self.value <= self.goal else "MISSED"

    @property
    def line(self) -> str:
        """The figure as a line of the table."""
        line = f"  {self.text:<48} {self._shown(self.value):>10} {self.unit:<7}"
        if self.goal is not None:
            goal = self._shown(self.goal) if self.unit else f"{self.goal:g}"
            line += f" goal {self.better} {goal}: {self.verdict}"
        return line.rstrip()

    def _shown(self, value: float) -> str:
        # Decimals only for small times and ratios.
        if float(value).is_integer() or abs(value) >= 100:
            return f"{value:,.0f}" if self.unit else f"{value:.2f}"
        return f"{value:.2f}"
