"""`python -m bench rivals` runs from end to end and reports what was requested."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.rivals.environment import CACHE
from bench.rivals.pgqueuer import ENVIRONMENT
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server

FIGURES = {
    "bulk",
    "cpu_client",
    "dead_tuples",
    "drain_1",
    "drain_1_from_start",
    "drain_1ms",
    "drain_2",
    "enqueue_1",
    "enqueue_10",
    "latency_call_p50",
    "latency_p99",
    "wal",
}


def figures_by_product(path: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for figure in json.loads(path.read_text(encoding="utf-8"))["figures"]:
        found.setdefault(figure["product"], {})[figure["measure"]] = figure
    return found


@pytest.mark.slow
def test_ours_alone_is_measured(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "rivals.json"
    summary = figures_of(
        run_bench(
            *("rivals", "--quick", "--product", "trunkline", "--results", str(path)),
            *("--dsn", server.dsn("trunkline")),
        )
    )
    assert summary["failed"] == []
    assert summary["skipped"] == {}
    assert databases_left(server, summary) == []
    record = json.loads(path.read_text(encoding="utf-8"))
    assert record["command"] == "python -m bench rivals --quick --product trunkline"
    assert record["machine"]["server_version"].startswith(str(server.major))
    assert "trunkline" in record["versions"]["trunkline"]
    # There is no goal without a rival.
    assert record["goals"] == []
    (figures,) = figures_by_product(path).values()
    assert figures.keys() >= FIGURES
    assert set(figures["lost"]["values"]) == {0}
    assert set(figures["repeated"]["values"]) == {0}
    assert {name for name in FIGURES if not figures[name]["median"] > 0} <= {"cpu_client"}


@pytest.mark.slow
@pytest.mark.skipif(not ENVIRONMENT.exists, reason="created by the first `python -m bench rivals`")
def test_pgqueuer_takes_part(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "rivals.json"
    result = run_bench(
        *("rivals", "--quick", "--product", "pgqueuer", "--product", "trunkline"),
        *("--only", "drain", "--only", "bulk", "--repetitions", "2", "--results", str(path)),
        *("--dsn", server.dsn("trunkline")),
        TRUNKLINE_BENCH_CACHE=str(CACHE),
    )
    summary = figures_of(result)
    assert summary["failed"] == []
    assert databases_left(server, summary) == []
    found = figures_by_product(path)
    assert list(found) == ["trunkline", "pgqueuer"]
    for figures in found.values():
        assert len(figures["drain_2"]["values"]) == 2
        assert set(figures["lost"]["values"] + figures["repeated"]["values"]) == {0}
        assert "enqueue_1" not in figures
    goals = {goal["key"] for goal in json.loads(path.read_text(encoding="utf-8"))["goals"]}
    assert goals >= {"bulk_vs_python", "drain_1_vs_python", "drain_2_vs_all"}
    assert "over best in Python, PgQueuer" in result.stdout
    assert "not judged: drain, 1 process, against graphile_worker" in result.stdout


def test_without_a_package_index_it_goes_on_without_the_rival(tmp_path: Path) -> None:
    path = tmp_path / "rivals.json"
    summary = figures_of(
        run_bench(
            *("rivals", "--quick", "--product", "pgqueuer", "--product", "trunkline"),
            *("--only", "bulk", "--results", str(path)),
            TRUNKLINE_BENCH_CACHE=str(tmp_path / "bench"),
            UV_CACHE_DIR=str(tmp_path / "uv"),
            UV_OFFLINE="1",
        )
    )
    assert list(summary["skipped"]) == ["pgqueuer"]
    assert "uv pip install failed" in summary["skipped"]["pgqueuer"]
    assert str(tmp_path) not in summary["skipped"]["pgqueuer"]
    assert list(figures_by_product(path)) == ["trunkline"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("rivals", "--only", "depth"), "argument --only: invalid choice: 'depth'"),
        (("rivals", "--product", "sidekiq"), "invalid choice: 'sidekiq'"),
        (("rivals", "--no-rivals"), "use --product trunkline"),
        (("worker", "--product", "trunkline"), "argument --product: only with the suite rivals"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = run_bench(*arguments)
    assert result.returncode == 2
    assert told in result.stderr
