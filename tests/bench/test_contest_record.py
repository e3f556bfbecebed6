"""A contest publishes what it measured: record, ratios, goals, table, README."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.contest import publish
from bench.contest.goals import GOALS, as_json, judge, ratio
from bench.contest.record import Board, Record, Result
from bench.contest.table import table

PRODUCTS = {
    "trunkline": {"name": "Trunkline", "language": "Python"},
    "pgqueuer": {"name": "PgQueuer", "language": "Python"},
    "chancy": {"name": "Chancy", "language": "Python"},
    "graphile_worker": {"name": "graphile-worker", "language": "JavaScript"},
}
# Three repetitions of the drain: the second was measured while the machine was slow.
DRAINS = {
    "trunkline": (30_000.0, 15_000.0, 33_000.0),
    "pgqueuer": (10_000.0, 4_000.0, 11_000.0),
    "chancy": (1_000.0, 1_100.0, 1_200.0),
    "graphile_worker": (24_000.0, 12_000.0, 25_000.0),
}


def result(product: str, measure: str, *values: float, of_all: float | None = None) -> Result:
    return Result(product, measure, "jobs/s", values, 50_000, of_all)


def board() -> Board:
    filled = Board()
    for product, values in DRAINS.items():
        for value in values:
            filled.add(product, "drain_1", "jobs/s", value, 50_000)
    filled.put(result("trunkline", "latency_call_p99", 4.0, 9.0, of_all=5.0))
    filled.put(result("pgqueuer", "latency_call_p99", 6.0, 8.0, of_all=4.0))
    return filled


def record(**changes: Any) -> Record:
    filled = board()
    goals, _ = judge(filled, PRODUCTS)
    content: dict[str, Any] = {
        "date": "2026-11-16",
        "command": "make bench-rivals",
        "seconds": 1800,
        "machine": {
            "cores": 2,
            "processor": "A & B",
            "server_version": "18.4",
            "system": "Debian",
        },
        "products": PRODUCTS,
        "versions": {"pgqueuer": {"pgqueuer": "1.6.0"}},
        "settings": {"pgqueuer": "batches of 500"},
        "skipped": {"oban": "needs Python 3.12"},
        "errors": {"chancy": ["drain_2: of 9,000 jobs 1 lost, 0 ran more than once"]},
        "board": filled,
        "goals": [as_json(goal) for goal in goals],
    }
    return Record(**{**content, **changes})


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "results" / "rivals.json"
    record().write(path)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["figures"][0] == {
        "product": "trunkline",
        "measure": "drain_1",
        "unit": "jobs/s",
        "median": 30_000,
        "min": 15_000,
        "max": 33_000,
        "values": [30_000, 15_000, 33_000],
        "jobs": 50_000,
    }
    assert content["skipped"] == {"oban": "needs Python 3.12"}
    again = Record.read(path)
    again.write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()
    pooled = again.board.get("trunkline", "latency_call_p99")
    assert pooled is not None
    # Not the median of the repetitions.
    assert pooled.median == 5.0


def test_ratios_are_taken_within_repetitions() -> None:
    ours = result("trunkline", "drain_1", *DRAINS["trunkline"])
    theirs = result("pgqueuer", "drain_1", *DRAINS["pgqueuer"])
    # 3, 3.75 and 3; with fewer repetitions of one product, the ratio is that of the medians.
    assert ratio(ours, theirs) == 3.0
    assert ratio(ours, result("pgqueuer", "drain_1", 10_000, 20_000)) == 2.0
    # A percentile of all samples; no ratio to a time that is not above zero.
    assert ratio(result("a", "p", 1, 1, of_all=3.0), result("b", "p", 9, 9, of_all=6.0)) == 0.5
    assert ratio(result("a", "p", 1.0), result("b", "p", -0.1)) is None


def test_goals_are_judged_against_the_best_of_those_they_name() -> None:
    figures, left = judge(board(), PRODUCTS)
    found = {figure.key: figure for figure in figures}
    assert set(found) == {
        "drain_1_vs_python",
        "drain_1_vs_graphile_worker",
        "latency_call_p99_vs_all",
    }
    python = found["drain_1_vs_python"]
    assert (python.value, python.verdict) == (3.0, "met")
    assert "PgQueuer" in python.text
    # 1.25, 1.25 and 1.32.
    assert found["drain_1_vs_graphile_worker"].verdict == "met"
    # Less is better here, and 5 is more than 1.2 times 4.
    assert found["latency_call_p99_vs_all"].verdict == "MISSED"
    # A product that is not in the run is not compared.
    assert len(left) == len(GOALS) - 3
    assert "bulk enqueue, against pgmq" in left


@pytest.mark.parametrize(("values", "verdict"), [((29_000.0,), "MISSED"), ((31_000.0,), "met")])
def test_a_goal_can_be_missed(values: tuple[float, ...], verdict: str) -> None:
    filled = Board()
    filled.put(result("trunkline", "drain_1", *values))
    filled.put(result("pgqueuer", "drain_1", 10_000.0))
    ((figure,), _) = judge(filled, PRODUCTS)
    assert figure.verdict == verdict


def test_the_table_has_every_product_with_its_spread() -> None:
    lines = table(record()).splitlines()
    assert any(line.split() == ["PgQueuer", "10,000", "(4,000", "to", "11,000)"] for line in lines)
    assert any(line.split() == ["Trunkline", "5.00", "(4.00", "to", "9.00)"] for line in lines)
    assert "  Chancy: drain_2: of 9,000 jobs 1 lost, 0 ran more than once" in lines
    assert "  oban: needs Python 3.12" in lines
    # Measures without results are not shown.
    assert not any("Enqueue" in line for line in lines)


def test_a_record_is_published_between_its_marks(tmp_path: Path) -> None:
    marks = "<!-- generated: rivals -->\nold\n<!-- end: rivals -->"
    (tmp_path / "bench").mkdir()
    (tmp_path / "README.md").write_text(f"# Before\n\n{marks}\n\nAfter\n")
    (tmp_path / "bench/README.md").write_text(f"# Bench\n\n{marks}\n")
    path = tmp_path / "bench/results/rivals.json"
    record().write(path)
    for _ in range(2):
        assert publish.main([str(path), "--root", str(tmp_path)]) == 0
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# Before\n\n<!-- generated: rivals -->\n![")
    assert text.endswith("<!-- end: rivals -->\n\nAfter\n")
    assert "(bench/results/rivals.svg)" in text
    assert "2026-11-16, `make bench-rivals`" in text
    assert "| Trunkline | **30,000** |" in text
    assert "old" not in text
    details = (tmp_path / "bench/README.md").read_text(encoding="utf-8")
    assert "| PgQueuer | pgqueuer 1.6.0 | batches of 500 |" in details
    assert "- oban: needs Python 3.12" in details
    assert "at least 3: met" in details
    assert path.with_suffix(".svg").read_text(encoding="utf-8").rstrip().endswith("</svg>")


def test_a_page_without_marks_is_left_alone() -> None:
    with pytest.raises(LookupError, match="generated: rivals"):
        publish.between("# Page\n", "rivals", "new")
