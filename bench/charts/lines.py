"""Lines over time: panels one above the other on one time axis, phases shaded and named."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.charts.svg import Drawing, shown, steps, text_width

__all__ = ["Line", "Phase", "Plot", "lines"]

_WIDTH = 960.0
_LEFT = 76.0
_RIGHT = 150.0
_PLOT = 104.0
_GAP = 44.0
_LINE = 17.0
# Labels at the ends of lines keep this far apart.
_APART = 13.0


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds and values in order; where the value is not a number the line has a gap."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel, of up to four lines."""

    title: str
    unit: str
    lines: Sequence[Line]
    # Powers of ten: for times that differ by more than that.
    log: bool = False
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run, in seconds."""

    name: str
    begin: float
    end: float


def lines(title: str, plots: Sequence[Plot], phases: Sequence[Phase], *, note: str = "") -> str:
    """Draw the panels; ``note`` stands below: date, machine, command. Lines are split at \\n."""
    drawing = Drawing(_WIDTH)
    drawing.text(24, 38, title, "heading")
    end = max(
        [
            *(phase.end for phase in phases),
            *(at for plot in plots for line in plot.lines for at, _ in line.points),
            1.0,
        ]
    )
    scale = (_WIDTH - _LEFT - _RIGHT) / end

    def across(seconds: float) -> float:
        return _LEFT + seconds * scale

    named = _names(phases, scale)
    top = 66.0 + _LINE * max((len(name) for name in named), default=1) + 22
    bottom = top + len(plots) * (_PLOT + _GAP) - _GAP
    for phase in phases[::2]:
        width = (phase.end - phase.begin) * scale
        drawing.rect(across(phase.begin), 56, width, bottom - 56, "shade")
    for phase, rows in zip(phases, named, strict=True):
        for row, text in enumerate(rows):
            drawing.text(across(phase.begin) + 4, 72 + row * _LINE, text, "strong small")
    times = steps(end / 60, 8) if end > 120 else [step / 60 for step in steps(end, 6)]
    times = [minutes * 60 for minutes in times if minutes * 60 <= end * 1.001]
    for number, plot in enumerate(plots):
        _plot(drawing, plot, top + number * (_PLOT + _GAP), across, times)
    for at in times:
        drawing.text(across(at), bottom + 17, _clock(at), "quiet small", anchor="middle")
    notes = note.splitlines()
    for number, text in enumerate(notes):
        drawing.text(24, bottom + 44 + number * _LINE, text, "quiet small")
    height = bottom + 40 + _LINE * len(notes)
    told = "; ".join(f"{p.title}: {', '.join(line.name for line in p.lines)}" for p in plots)
    phased = ", ".join(f"{p.name} from {_clock(p.begin)} to {_clock(p.end)}" for p in phases)
    return drawing.render(height, title, f"{told}. Phases: {phased}")


def _plot(
    drawing: Drawing,
    plot: Plot,
    top: float,
    across: Callable[[float], float],
    times: Sequence[float],
) -> None:
    axis, down = _scale(plot, top)
    right = _WIDTH - _RIGHT
    drawing.text(24, top - 10, plot.title, "title", aside=plot.unit)
    for at in times:
        drawing.line(across(at), top, across(at), top + _PLOT, "grid")
    for step in axis:
        drawing.line(_LEFT, down(step), right, down(step), "grid" if step else "axis")
        drawing.text(_LEFT - 6, down(step) + 4, shown(step), "quiet small", anchor="end")
    labels: list[tuple[float, str, str]] = []
    if plot.goal is not None:
        drawing.line(_LEFT, down(plot.goal), right, down(plot.goal), "goal")
        labels.append((down(plot.goal), f"goal {shown(plot.goal)}", "goal"))
    for number, line in enumerate(plot.lines):
        parts = _unbroken(line.points)
        for part in parts:
            drawing.path([(across(at), down(value)) for at, value in part], f"line-{number}")
        if parts:
            labels.append((down(parts[-1][-1][1]), line.name, f"line-{number}"))
    for y, text, css in _apart(labels, top, top + _PLOT):
        drawing.text(right + 6, y + 4, text, f"small {css}")


def _scale(plot: Plot, top: float) -> tuple[list[float], Callable[[float], float]]:
    """The numbers of its axis, and how far down a value is."""
    values = [v for line in plot.lines for _, v in line.points if math.isfinite(v)]
    if plot.goal is not None:
        values.append(plot.goal)
    axis = _powers(values) if plot.log else steps(max(values, default=1.0), 3)

    def down(value: float) -> float:
        if plot.log:
            low, high = math.log10(axis[0]), math.log10(axis[-1])
            share = (math.log10(max(value, axis[0])) - low) / (high - low)
        else:
            share = value / axis[-1]
        return top + _PLOT * (1 - share)

    return axis, down


def _unbroken(points: Sequence[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    parts: list[list[tuple[float, float]]] = [[]]
    for at, value in points:
        if math.isfinite(value):
            parts[-1].append((at, value))
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]


def _apart(
    labels: Sequence[tuple[float, str, str]], top: float, bottom: float
) -> list[tuple[float, str, str]]:
    """Push labels apart that would lie on each other, within the panel if it is high enough."""
    placed: list[tuple[float, str, str]] = []
    for y, text, css in sorted(labels):
        placed.append((max(y, placed[-1][0] + _APART) if placed else max(y, top), text, css))
    beyond = placed[-1][0] - bottom if placed else 0.0
    limit = bottom
    for number in range(len(placed) - 1, -1, -1) if beyond > 0 else ():
        y, text, css = placed[number]
        placed[number] = (min(y, limit), text, css)
        limit = placed[number][0] - _APART
    return placed


def _names(phases: Sequence[Phase], scale: float) -> list[list[str]]:
    """Break the names of narrow phases into rows."""
    named = []
    for phase in phases:
        room = (phase.end - phase.begin) * scale - 6
        rows = [""]
        for word in phase.name.split():
            longer = f"{rows[-1]} {word}".strip()
            if rows[-1] and text_width(longer, 11) > room:
                rows.append(word)
            else:
                rows[-1] = longer
        named.append(rows)
    return named


def _powers(values: Sequence[float]) -> list[float]:
    positive = [value for value in values if value > 0]
    low = math.floor(math.log10(min(positive, default=1.0)))
    high = math.ceil(math.log10(max(positive, default=1.0)))
    return [10.0**power for power in range(low, max(high, low + 1) + 1)]


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
