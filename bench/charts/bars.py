"""Horizontal bars: a panel for each measure, a row for each contender, whiskers for the spread."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from bench.charts.paper import OTHER, OURS, QUIET, sheet, shown, svg

__all__ = ["Bar", "Panel", "Row", "bars"]

_COLUMNS = 2
_INCHES_PER_BAR = 0.24


@dataclass(frozen=True, slots=True)
class Bar:
    """One value with its spread. ``name``, such as "p99", distinguishes bars of a row."""

    value: float
    low: float
    high: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A contender and its bars."""

    label: str
    bars: Sequence[Bar]
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Panel:
    """A measure; rows are drawn in the given order."""

    title: str
    unit: str
    rows: Sequence[Row]
    # Shown with the unit: "more is better".
    better: str = ""
    # The axis ends here, and longer bars show their number at its end, so that one slow contender
    # does not flatten all others.
    limit: float | None = None


def bars(title: str, panels: Sequence[Panel], *, note: str = "") -> str:
    """Draw the panels as SVG; ``note`` (date, machine, command) is printed below."""
    lines = -(-len(panels) // _COLUMNS)
    tallest = max(sum(len(row.bars) for row in panel.rows) for panel in panels)
    figure = Figure(figsize=(11, lines * (tallest * _INCHES_PER_BAR + 0.9) + 1.1))
    places = figure.subplots(lines, _COLUMNS, squeeze=False).flatten()
    for axes, panel in zip(places, panels, strict=False):
        _panel(axes, panel)
    for axes in places[len(panels) :]:
        axes.remove()
    sheet(figure, title, note)
    return svg(figure)


def _panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(", ".join(part for part in (panel.unit, panel.better) if part), color=QUIET)
    every = [bar for row in panel.rows for bar in row.bars]
    longest = max(max(bar.high, bar.value) for bar in every)
    end = longest if panel.limit is None else min(panel.limit, longest)
    # Room for the numbers behind the bars.
    axes.set_xlim(0, end * 1.25)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    ticks = []
    place = 0
    for row in panel.rows:
        ticks.append(place + (len(row.bars) - 1) / 2)
        for number, bar in enumerate(row.bars):
            # The first bar of a row is opaque; the others show the same contender differently.
            opacity = 1.0 - 0.6 * number / len(row.bars)
            _bar(axes, bar, place, end, color=OURS if row.ours else OTHER, opacity=opacity)
            place += 1
    axes.set_yticks(ticks, [row.label for row in panel.rows])
    for label, row in zip(axes.get_yticklabels(), panel.rows, strict=True):
        label.set_fontweight("bold" if row.ours else "normal")
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    axes.set_axisbelow(True)


def _bar(axes: Axes, bar: Bar, place: int, end: float, *, color: str, opacity: float) -> None:
    axes.barh(place, min(bar.value, end), height=0.75, color=color, alpha=opacity)
    if bar.high <= end:
        spread = [[max(bar.value - bar.low, 0.0)], [max(bar.high - bar.value, 0.0)]]
        axes.errorbar(bar.value, place, xerr=spread, color="black", capsize=2, linewidth=0.8)
    cut = " →" if bar.value > end else ""
    text = f" {shown(bar.value)}{cut} {bar.name}".rstrip()
    axes.text(min(max(bar.value, bar.high), end), place, text, va="center", fontsize=8)
