"""Charts are well-formed, show what they were given, and stay inside their picture."""

import itertools
import math
import re
from xml.etree import ElementTree as ET

import pytest

from bench.charts.bars import Bar, Panel, Row, bars
from bench.charts.lines import Line, Phase, Plot, lines
from bench.charts.svg import shown, steps

SVG = "{http://www.w3.org/2000/svg}"

PANEL = Panel(
    "Drain",
    "jobs/s",
    [
        Row("Ours", [Bar(32_000, 30_000, 34_000)], ours=True),
        Row("Other", [Bar(9_819, 8_100, 11_000)]),
        Row("Absent", [], note="left out: no <Redis>"),
    ],
    better="more is better",
)


def parse(text: str) -> ET.Element:
    return ET.fromstring(text)  # noqa: S314 - our own


def texts(root: ET.Element) -> list[str]:
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def of_class(root: ET.Element, tag: str, css: str) -> list[ET.Element]:
    return [each for each in root.iter(f"{SVG}{tag}") if css in each.get("class", "").split()]


def number(element: ET.Element, name: str) -> float:
    return float(element.get(name, "nan"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (23_189.4, "23,189"), (9.25, "9.25"), (1.9, "1.9"), (0.0123, "0.0123"), (20, "20")],
)
def test_numbers_have_the_digits_a_reader_needs(value: float, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize("highest", [0.003, 0.7, 1, 9.9, 20, 34_000, 9_999_999])
def test_an_axis_reaches_the_highest_value_in_round_steps(highest: float) -> None:
    axis = steps(highest)
    assert axis[0] == 0
    assert highest <= axis[-1] * 1.000001 < highest * 2
    assert 3 <= len(axis) <= 6


def test_bars_have_the_lengths_of_their_values() -> None:
    root = parse(bars("Queues", [PANEL]))
    (ours,), (other,) = of_class(root, "rect", "ours"), of_class(root, "rect", "other")
    assert number(ours, "width") / number(other, "width") == pytest.approx(32_000 / 9_819, rel=0.01)
    assert number(ours, "x") == number(other, "x")


def test_whiskers_reach_from_least_to_most() -> None:
    root = parse(bars("Queues", [PANEL]))
    (ours,) = of_class(root, "rect", "ours")
    scale = number(ours, "width") / 32_000
    flat = [line for line in of_class(root, "line", "spread") if line.get("y1") == line.get("y2")]
    assert len(flat) == 2
    reach = [(number(line, "x1"), number(line, "x2")) for line in flat]
    start = number(ours, "x")
    assert reach[0] == pytest.approx((start + 30_000 * scale, start + 34_000 * scale), abs=0.2)


def test_every_value_is_written_and_text_is_escaped() -> None:
    found = texts(parse(bars("Queues & more", [PANEL], note="one line\nanother")))
    assert {"Queues & more", "32,000", "9,819", "left out: no <Redis>"} <= set(found)
    assert {"one line", "another", "jobs/s, more is better"} <= set(found)


def test_a_bar_beyond_the_limit_is_cut_and_keeps_its_number() -> None:
    rows = [Row("Ours", [Bar(2, 2, 2)], ours=True), Row("Slow", [Bar(1_107, 1_000, 1_200)])]
    root = parse(bars("Queues", [Panel("Latency", "ms", rows, limit=20)]))
    (slow,) = of_class(root, "rect", "other")
    assert number(slow, "x") + number(slow, "width") < 960
    # The background of the picture, and two strokes across the bar.
    assert len(of_class(root, "rect", "paper")) == 3
    assert "1,107" in texts(root)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_bars_stay_inside_their_picture(columns: int) -> None:
    root = parse(bars("Queues", [PANEL] * 5, columns=columns))
    height = number(root, "height")
    for element in root.iter(f"{SVG}rect"):
        assert float(element.get("x", "0")) + number(element, "width") <= 960
    for element in root.iter(f"{SVG}text"):
        assert 0 <= number(element, "x") <= 960
        assert 0 < number(element, "y") < height


def test_both_colour_schemes_are_there() -> None:
    text = bars("Queues", [PANEL])
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    for css in (".paper", "text", ".ours", ".other", ".grid"):
        (one,) = re.findall(rf"^{re.escape(css)} {{ \w+: (#\w+)", light, re.MULTILINE)
        (other,) = re.findall(rf"^{re.escape(css)} {{ \w+: (#\w+)", dark, re.MULTILINE)
        assert one != other


def plotted(*values: float, log: bool = False, goal: float | None = None) -> ET.Element:
    line = Line("seen", list(enumerate(values)))
    plot = Plot("Jobs", "per second", [line], log=log, goal=goal)
    return parse(lines("Soak", [plot], [Phase("clean", 0, 5), Phase("held snapshot", 5, 9)]))


def courses(root: ET.Element) -> list[list[tuple[float, float]]]:
    return [
        [(float(x), float(y)) for x, y in re.findall(r"([\d.]+) ([\d.]+)", path.get("d", ""))]
        for path in root.iter(f"{SVG}path")
    ]


def test_a_line_rises_with_its_values() -> None:
    ((first, second, third),) = courses(plotted(0, 10, 5))
    assert first[0] < second[0] < third[0]
    # Downwards is more.
    assert second[1] < third[1] < first[1]


def test_where_there_is_no_value_a_line_has_a_gap() -> None:
    assert [len(course) for course in courses(plotted(1, 2, math.nan, math.nan, 3, 4, 5))] == [2, 3]


def test_equal_ratios_are_equal_heights_on_a_logarithmic_axis() -> None:
    ((one, ten, hundred),) = courses(plotted(1, 10, 100, log=True))
    assert one[1] - ten[1] == pytest.approx(ten[1] - hundred[1], abs=0.2)
    # What cannot be on such an axis is at its end, not outside.
    ((low, high),) = courses(plotted(-3, 10, log=True))
    assert high[1] <= low[1] < 300


def test_phases_and_goals_are_named() -> None:
    root = plotted(1, 2, 3, goal=50)
    assert {"clean", "held snapshot", "goal 50", "seen"} <= set(texts(root))
    assert len(of_class(root, "line", "goal")) == 1


def test_names_of_lines_that_end_together_do_not_lie_on_each_other() -> None:
    plot = Plot("Jobs", "", [Line(f"line {n}", [(0, 5), (1, 5)]) for n in range(4)])
    root = parse(lines("Soak", [plot], []))
    heights = sorted(
        number(element, "y")
        for element in root.iter(f"{SVG}text")
        if (element.text or "").startswith("line ")
    )
    assert len(heights) == 4
    assert min(b - a for a, b in itertools.pairwise(heights)) >= 12
