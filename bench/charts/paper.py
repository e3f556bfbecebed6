"""Shared by all charts: colours, numbers, headings, and reproducible SVG."""

from io import StringIO

import matplotlib as mpl
from matplotlib.figure import Figure

__all__ = ["OTHER", "OURS", "QUIET", "sheet", "shown", "svg"]

OURS = "#1f6feb"
OTHER = "#8b949e"
QUIET = "#57606a"


def shown(value: float) -> str:
    """Three significant digits, or all digits before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sheet(figure: Figure, title: str, note: str) -> None:
    """Add the heading and the note, and arrange the panels between them."""
    height = figure.get_figheight()
    figure.text(0.01, 1 - 0.25 / height, title, fontsize=14, fontweight="bold", va="center")
    figure.text(0.01, 0.08 / height, note, color=QUIET, va="bottom")
    figure.tight_layout(rect=(0, 0.45 / height, 1, 1 - 0.4 / height))


def svg(figure: Figure) -> str:
    """The figure as SVG on white, which also works on pages with a dark background."""
    # The same data gives the same identifiers. Text stays text, so it can be searched.
    stable = mpl.rc_context({"svg.hashsalt": "trunkline", "svg.fonttype": "none"})
    with stable, StringIO() as file:
        figure.savefig(file, format="svg", metadata={"Date": None}, bbox_inches="tight")
        return "\n".join(line.rstrip() for line in file.getvalue().splitlines()) + "\n"
