"""What both kinds of chart are made of: elements, colours, numbers and steps of an axis."""

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

__all__ = ["Drawing", "shown", "steps", "text_width"]

# Light and dark. Written out for each class instead of CSS variables, which many programs that show
# SVG do not know; those that do not know dark either show the light ones.
_COLOURS = {
    "text": ("#1f2328", "#e6edf3"),
    ".paper": ("#ffffff", "#0d1117"),
    ".shade": ("#f1f4f8", "#171d26"),
    ".ours": ("#1660d0", "#58a6ff"),
    ".other": ("#a9b4c0", "#566170"),
    ".quiet, .aside": ("#59636e", "#9aa5b1"),
    "text.goal": ("#b3261e", "#ff7b72"),
    "text.line-0": ("#1660d0", "#58a6ff"),
    "text.line-1": ("#b34d09", "#f0883e"),
    "text.line-2": ("#1a7f37", "#56d364"),
    "text.line-3": ("#8250df", "#bc8cff"),
}
_STROKES = {
    ".grid": ("#dfe4ea", "#2a313b"),
    ".axis": ("#59636e", "#9aa5b1"),
    ".spread": ("#3d454e", "#d5dce4"),
    ".goal": ("#b3261e", "#ff7b72"),
    ".line-0": ("#1660d0", "#58a6ff"),
    ".line-1": ("#c2570c", "#f0883e"),
    ".line-2": ("#1a7f37", "#56d364"),
    ".line-3": ("#8250df", "#bc8cff"),
}
_SHAPES = """
text { font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
  font-size: 12px; font-variant-numeric: tabular-nums; }
.heading { font-size: 18px; font-weight: 600; }
.title { font-size: 13px; font-weight: 600; }
.small { font-size: 11px; }
.strong { font-weight: 600; }
.aside { font-size: 11px; font-weight: 400; }
.spread { stroke-width: 1.5; }
.goal { stroke-dasharray: 5 4; }
path { fill: none; stroke-width: 1.6; stroke-linejoin: round; stroke-linecap: round; }
text.goal, text.line-0, text.line-1, text.line-2, text.line-3 { stroke: none; }
""".strip()


def _colours(which: int) -> str:
    return "\n".join(
        f"{selector} {{ {what}: {colours[which]}; }}"
        for what, rules in (("fill", _COLOURS), ("stroke", _STROKES))
        for selector, colours in rules.items()
    )


_STYLE = f"""{_colours(0)}
@media (prefers-color-scheme: dark) {{
{_colours(1)}
}}
{_SHAPES}"""


class Drawing:
    """Collects elements; coordinates are pixels from the upper left corner."""

    def __init__(self, width: float) -> None:
        self._width = width
        self._elements: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, css: str, *, faint: float = 1.0
    ) -> None:
        opacity = f' fill-opacity="{faint:g}"' if faint < 1 else ""
        self._elements.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(height)}"'
            f' class="{css}"{opacity}/>'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, css: str) -> None:
        self._elements.append(
            f'<line x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}" class="{css}"/>'
        )

    def text(
        self, x: float, y: float, content: str, css: str, *, anchor: str = "start", aside: str = ""
    ) -> None:
        placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
        more = f'<tspan class="aside" dx="5">{escape(aside)}</tspan>' if aside else ""
        self._elements.append(
            f'<text x="{_n(x)}" y="{_n(y)}" class="{css}"{placed}>{escape(content)}{more}</text>'
        )

    def path(self, points: Sequence[tuple[float, float]], css: str) -> None:
        course = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        self._elements.append(f'<path d="M{course}" class="{css}"/>')

    def render(self, height: float, title: str, description: str) -> str:
        """The whole file; the description is what somebody hears who cannot see it."""
        width = _n(self._width)
        size = f'width="{width}" height="{_n(height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size}',
                f'  viewBox="0 0 {width} {_n(height)}" role="img" aria-label={quoteattr(title)}>',
                f"<title>{escape(title)}</title>",
                f"<desc>{escape(description)}</desc>",
                f"<style>\n{_STYLE}\n</style>",
                # A background of its own: a page may be dark while its reader's system is light.
                f'<rect {size} rx="6" class="paper"/>',
                *self._elements,
                "</svg>",
                "",
            ]
        )


def shown(value: float) -> str:
    """A number with as many digits as a reader of a chart needs."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{min(digits, 4)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def steps(highest: float, count: int = 4) -> list[float]:
    """Round numbers from zero, about so many, the last not below the highest."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= rough * 0.999)
    return [number * step for number in range(math.ceil(highest / step - 1e-9) + 1)]


def text_width(content: str, size: float = 12.0) -> float:
    """About how wide it is: fonts differ, so generous."""
    return len(content) * size * 0.6


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
