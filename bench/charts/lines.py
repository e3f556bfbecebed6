"""Lines over time: panels one above the other on one time axis, phases shaded and named."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from bench.charts.paper import QUIET, sheet, shown, svg

__all__ = ["Line", "Phase", "Plot", "lines"]


@dataclass(frozen=True, slots=True)
class Line:
    """Seconds and values in order; the line has a gap where the value is not a number."""

    name: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel."""

    title: str
    unit: str
    lines: Sequence[Line]
    # A logarithmic axis, for times that differ by powers of ten.
    log: bool = False
    goal: float | None = None


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run, in seconds."""

    name: str
    begin: float
    end: float


def lines(title: str, plots: Sequence[Plot], phases: Sequence[Phase], *, note: str = "") -> str:
    """Draw the panels as SVG; ``note`` (date, machine, command) is printed below."""
    figure = Figure(figsize=(11, 1.7 * len(plots) + 1.3))
    places = figure.subplots(len(plots), 1, sharex=True, squeeze=False).flatten()
    for axes, plot in zip(places, plots, strict=True):
        _plot(axes, plot)
        for phase in phases[::2]:
            axes.axvspan(phase.begin, phase.end, color=QUIET, alpha=0.1, linewidth=0)
    for phase in phases:
        middle = (phase.begin + phase.end) / 2
        places[0].annotate(
            phase.name.replace(" ", "\n"),
            (middle, 1.0),
            (0, 16),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="center",
            fontsize=7,
        )
    places[-1].xaxis.set_major_formatter(FuncFormatter(lambda at, _: _clock(at)))
    sheet(figure, title, note)
    return svg(figure)


def _plot(axes: Axes, plot: Plot) -> None:
    axes.set_title(f"{plot.title} ({plot.unit})", loc="left", fontsize=9)
    for line in plot.lines:
        axes.plot(*zip(*line.points, strict=True), label=line.name, linewidth=1)
    if plot.goal is not None:
        axes.axhline(plot.goal, color="black", linestyle="--", linewidth=0.8)
        axes.text(1.0, plot.goal, f" goal {shown(plot.goal)}", transform=axes.get_yaxis_transform())
    if plot.log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.legend(loc="upper left", bbox_to_anchor=(1.06, 1.0), fontsize=8, frameon=False)
    axes.grid(alpha=0.3)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
