"""The bench runs from end to end and gives the figures that others rely on."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bench.figures import Figure
from tests.support.servers import Server

ROOT = Path(__file__).parents[2]

PROMISED = {
    "claim_buffers_history_ratio",
    "claim_complete_vs_raw",
    "claim_p95_deep_ratio",
    "enqueue_many_vs_raw",
    "held_snapshot_ratio",
    "wal_bytes_8k",
}


def databases_left(server: Server, figures: dict[str, Any]) -> list[tuple[str]]:
    """Those of that run: another test may run the bench on the same server."""
    with psycopg.connect(server.superuser_dsn) as connection:
        return connection.execute(
            "select datname from pg_database where starts_with(datname, %s)",
            (figures["databases"],),
        ).fetchall()


def run_bench(*arguments: str, dsn: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if name != "TRUNKLINE_BENCH_DSN"
    }
    if dsn:
        environment["TRUNKLINE_BENCH_DSN"] = dsn
    return subprocess.run(
        [sys.executable, "-m", "bench", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_measure_runs_on_a_given_server(server: Server) -> None:
    result = run_bench("--quick", dsn=server.dsn("trunkline"))
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout.splitlines()[-1])
    assert figures.keys() >= PROMISED
    assert {key: figures[key] for key in PROMISED if not figures[key] > 0} == {}
    assert all(math.isfinite(value) for value in figures.values() if isinstance(value, float))
    assert figures["server_version"].startswith(str(server.major))
    assert figures["cores"] == os.cpu_count()
    # Each figure with a goal says in the table whether it was met.
    assert result.stdout.count(" goal at ") == 9
    assert databases_left(server, figures) == []


def test_without_a_server_it_brings_its_own_and_runs_what_is_asked() -> None:
    result = run_bench("--quick", "--only", "enqueue")
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout.splitlines()[-1])
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
