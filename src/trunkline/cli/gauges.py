"""Bars that show how full something is, and amounts in their units."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from trunkline.cli.tables import Column

__all__ = ["bar", "gauge", "percent", "quantity"]

# From this share on a bar is yellow, and from the next on red.
_HIGH: Final = 0.75
_FULL: Final = 1.0
# Terminals of at least this width get long bars.
_WIDE: Final = 110
_LONG: Final = 20
_SHORT: Final = 10


def bar(share: float, width: int, *, plain: bool = False) -> Text:
    """Return a bar: with any fill at least one cell, and all cells only if it is full."""
    full, empty = ("#", ".") if plain else ("█", "░")
    filled = min(width, int(share * width))
    if share > 0:
        filled = max(filled, 1)
    colour = "red" if share >= _FULL else "yellow" if share >= _HIGH else "green"
    return Text(full * filled, style=colour) + Text(empty * (width - filled), style="dim")


def gauge(
    title: str, share: Callable[[Any], float | None], out: Console, *, rank: int
) -> list[Column[Any]]:
    """Return a column of bars; none for a file, because the numbers have the same information."""
    if not out.is_terminal:
        return []
    width = _LONG if out.width >= _WIDE else _SHORT
    plain = out.options.ascii_only

    def text(row: Any) -> Text:
        fill = share(row)
        return Text("") if fill is None else bar(fill, width, plain=plain)

    return [Column(title, text, rank=rank)]


def percent(share: float | Decimal | None) -> str:
    """Format a share, rounded down: less than all is never 100 %."""
    return "" if share is None else f"{int(share * 100)}%"


def quantity(number: int, unit: str, like: int | None = None) -> str:
    """Format an amount; bytes use the family of units in which `like` is a round number."""
    if unit != "bytes":
        return f"{number:,}"
    like = number if like is None else like
    step, names = (
        (1000, ("B", "kB", "MB", "GB", "TB"))
        if like % 1_000_000 == 0
        else (1024, ("B", "KiB", "MiB", "GiB", "TiB"))
    )
    value, place = float(number), 0
    while value >= step and place < len(names) - 1:
        value, place = value / step, place + 1
    if place == 0:
        return f"{number} B"
    return f"{value:,.1f}".removesuffix(".0") + f" {names[place]}"
