"""The options of an export as the renderers read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["PAPER", "Options", "read_options"]

# Inches.
PAPER: Final = {"A4": (8.27, 11.69), "Letter": (8.5, 11.0), "Legal": (8.5, 14.0)}


@dataclass(frozen=True, slots=True)
class Options:
    """Complete options; the database has checked them."""

    template: str = "minimal"
    page_size: str = "Letter"
    top: float = 1.0
    bottom: float = 1.0
    left: float = 1.0
    right: float = 1.0
    quality: str = "normal"
    color: bool = True

    @property
    def paper(self) -> tuple[float, float]:
        """Width and height in inches."""
        return PAPER[self.page_size]


def read_options(data: Mapping[str, Any]) -> Options:
    """Read the options of a request."""
    margins = {side: float(data["margins"][side]) for side in ("top", "bottom", "left", "right")}
    return Options(
        template=data["templateSlug"],
        page_size=data["pageSize"],
        quality=data["quality"],
        color=data["colorMode"] == "color",
        **margins,
    )
