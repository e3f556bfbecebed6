"""Horizontal bars: a panel for each measure, a row for each contender, whiskers for the spread."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from bench.charts.svg import Drawing, shown, steps, text_width

__all__ = ["Bar", "Panel", "Row", "bars"]

_WIDTH = 960.0
_MARGIN = 24.0
_GUTTER = 36.0
_BAR = 13.0
_ROW_GAP = 9.0
# Heights above the rows (title and its second line), and below them (numbers of the axis).
_HEAD = 44.0
_FOOT = 34.0
_LINE = 17.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its spread. ``name`` tells it from its neighbours in the row, as "p99"."""

    value: float
    low: float
    high: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A contender; a row without bars shows its note instead, such as why it was left out."""

    label: str
    bars: Sequence[Bar]
    ours: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A measure; rows are drawn in the order given."""

    title: str
    unit: str
    rows: Sequence[Row]
    # Shown under the title: "more is better".
    better: str = ""
    # Bars that are longer end here, marked as cut, with their number: one slow contender must not
    # flatten all others.
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class _Axis:
    start: float
    scale: float
    end: float

    def x(self, value: float) -> float:
        return self.start + min(value, self.end) * self.scale


def bars(title: str, panels: Sequence[Panel], *, note: str = "", columns: int = 2) -> str:
    """Draw the panels; ``note`` stands below: date, machine, command. Lines are split at \\n."""
    drawing = Drawing(_WIDTH)
    drawing.text(_MARGIN, 38, title, "heading")
    width = (_WIDTH - 2 * _MARGIN - (columns - 1) * _GUTTER) / columns
    y = 60.0
    for first in range(0, len(panels), columns):
        line = panels[first : first + columns]
        for number, panel in enumerate(line):
            _panel(drawing, panel, _MARGIN + number * (width + _GUTTER), y, width)
        y += max(_height(panel) for panel in line)
    notes = note.splitlines()
    for number, text in enumerate(notes):
        drawing.text(_MARGIN, y + 8 + number * _LINE, text, "quiet small")
    height = ceil(y + _LINE * len(notes) + 12)
    return drawing.render(height, title, "; ".join(_told(panel) for panel in panels))


def _height(panel: Panel) -> float:
    return _HEAD + sum(_row_height(row) + _ROW_GAP for row in panel.rows) + _FOOT


def _row_height(row: Row) -> float:
    return _BAR * max(len(row.bars), 1)


def _panel(drawing: Drawing, panel: Panel, left: float, top: float, width: float) -> None:
    every = [bar for row in panel.rows for bar in row.bars]
    longest = max((max(bar.high, bar.value) for bar in every), default=1.0)
    axis = steps(longest if panel.limit is None else min(panel.limit, longest))
    end = axis[-1]
    start = left + max((text_width(row.label) for row in panel.rows), default=0.0) + 8
    room = max((text_width(_label(bar)) for bar in every), default=0.0) + 10
    scale = (left + width - room - start) / end
    drawing.text(left, top + 14, panel.title, "title")
    unit = ", ".join(part for part in (panel.unit, panel.better) if part)
    drawing.text(left, top + 31, unit, "quiet small")
    y = top + _HEAD
    bottom = y + sum(_row_height(row) + _ROW_GAP for row in panel.rows)
    for step in axis:
        x = start + step * scale
        drawing.line(x, y - 4, x, bottom, "grid" if step else "axis")
        drawing.text(x, bottom + 14, shown(step), "quiet small", anchor="middle")
    for row in panel.rows:
        height = _row_height(row)
        css = "strong" if row.ours else ""
        drawing.text(start - 8, y + height / 2 + 4, row.label, css, anchor="end")
        if not row.bars:
            drawing.text(start + 5, y + height / 2 + 4, row.note or "no figure", "quiet small")
        for number in range(len(row.bars)):
            _bar(drawing, row, number, _Axis(start, scale, end), y + number * _BAR)
        y += height + _ROW_GAP


def _bar(drawing: Drawing, row: Row, number: int, axis: _Axis, y: float) -> None:
    bar = row.bars[number]
    middle, end = y + _BAR / 2, axis.x(bar.value)
    css = "ours" if row.ours else "other"
    # The first of a row is the fullest: further ones are the same contender, seen otherwise.
    faint = 1.0 - 0.6 * number / len(row.bars)
    drawing.rect(axis.start, y + 1, end - axis.start, _BAR - 2, css, faint=faint)
    low, high = axis.x(bar.low), axis.x(bar.high)
    if high - low > 0.5:
        drawing.line(low, middle, high, middle, "spread")
        for x in (low, high):
            drawing.line(x, middle - 3, x, middle + 3, "spread")
    if bar.value > axis.end:
        # Two strokes of the background across the end of the bar.
        for x in (end - 14, end - 8):
            drawing.rect(x, y, 2.5, _BAR, "paper")
    css = "strong small" if row.ours else "small"
    drawing.text(max(end, high) + 6, middle + 4, shown(bar.value), css, aside=bar.name)


def _label(bar: Bar) -> str:
    return f"{shown(bar.value)} {bar.name}".strip()


def _told(panel: Panel) -> str:
    rows = ", ".join(
        f"{row.label} {' / '.join(_label(bar) for bar in row.bars) or row.note}"
        for row in panel.rows
    )
    return f"{panel.title} ({panel.unit}): {rows}"
