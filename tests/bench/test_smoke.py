"""The bench runs from end to end and prints the figures that others rely on."""

import math
import os

import pytest

from bench.figures import Figure
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server

PROMISED = {
    "claim_buffers_history_ratio",
    "claim_complete_vs_raw",
    "claim_p95_deep_ratio",
    "enqueue_batch_vs_unnest",
    "enqueue_many_vs_raw",
    "held_snapshot_ratio",
    "wal_bytes_8k",
}


@pytest.mark.slow
def test_every_measure_runs_on_a_given_server(server: Server) -> None:
    result = run_bench("--quick", TRUNKLINE_BENCH_DSN=server.dsn("trunkline"))
    figures = figures_of(result)
    assert figures.keys() >= PROMISED
    assert {key: figures[key] for key in PROMISED if not figures[key] > 0} == {}
    assert all(math.isfinite(value) for value in figures.values() if isinstance(value, float))
    assert figures["server_version"].startswith(str(server.major))
    assert figures["cores"] == os.cpu_count()
    # The table shows for each figure with a goal whether it was met.
    assert result.stdout.count(" goal at ") == 11
    assert databases_left(server, figures) == []


def test_without_a_server_it_brings_its_own_and_runs_what_is_asked() -> None:
    figures = figures_of(run_bench("--quick", "--only", "enqueue"))
    assert figures["enqueue_vs_raw"] > 0
    assert not figures.keys() & PROMISED


def test_an_unknown_measure_is_refused() -> None:
    result = run_bench("--only", "nothing")
    assert result.returncode == 2
    assert "invalid choice: 'nothing'" in result.stderr


@pytest.mark.parametrize(
    ("value", "better", "verdict"),
    [(0.8, "at least", "met"), (0.79, "at least", "MISSED"), (0.81, "at most", "MISSED")],
)
def test_a_goal_is_met_or_missed(value: float, better: str, verdict: str) -> None:
    figure = Figure("key", value, "text", goal=0.8, better=better)  # type: ignore[arg-type]
    assert figure.verdict == verdict


@pytest.mark.parametrize(
    ("figure", "line"),
    [
        (Figure("k", 31_234.5, "drained", "jobs/s"), "drained 31,234 jobs/s"),
        (Figure("k", 2.345, "pick-up", "ms", goal=20), "pick-up 2.35 ms goal at least 20: MISSED"),
        (Figure("k", 1.0, "ratio", goal=0.8), "ratio 1.00 goal at least 0.8: met"),
        (
            Figure("k", 0, "lost", "jobs", goal=0, better="at most"),
            "lost 0 jobs goal at most 0: met",
        ),
    ],
)
def test_a_figure_is_shown_with_as_many_digits_as_it_means(figure: Figure, line: str) -> None:
    assert " ".join(figure.line.split()) == line
