"""The measures of whole processes run, are correct, and leave nothing behind."""

import sys
import time
from pathlib import Path

import pytest

from bench.apps.slate import Slate
from bench.rivals.environment import CACHE
from bench.rivals.pgqueuer import ENVIRONMENT
from bench.rivals.product import PostgresContender
from bench.worker.processes import wait_for, working
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server

PROMISED = {
    "drain_trunkline",
    "drain_trunkline_lost",
    "drain_trunkline_repeated",
    "help_ms",
    "memory_growth",
    "memory_idle_trunkline",
    "pickup_trunkline_p50",
    "pickup_trunkline_p99",
    "single_enqueue_trunkline",
}
AGAINST_PGQUEUER = {"drain_vs_pgqueuer", "drain_vs_pgqueuer_tuned", "single_enqueue_vs_pgqueuer"}


@pytest.mark.slow
def test_our_processes_are_measured_without_rivals(server: Server) -> None:
    figures = figures_of(
        run_bench("worker", "--quick", "--no-rivals", "--dsn", server.dsn("trunkline"))
    )
    assert figures.keys() >= PROMISED
    assert not [key for key in figures if "pgqueuer" in key]
    assert figures["drain_trunkline_lost"] == 0
    assert figures["drain_trunkline_repeated"] == 0
    assert figures["drain_trunkline"] > 0
    assert 10 < figures["memory_idle_trunkline"] < 200
    assert databases_left(server, figures) == []


@pytest.mark.slow
@pytest.mark.skipif(not ENVIRONMENT.exists, reason="created by the first `python -m bench worker`")
def test_pgqueuer_is_measured_in_the_same_run(server: Server) -> None:
    figures = figures_of(
        run_bench(
            *("worker", "--quick", "--only", "enqueue", "--only", "drain"),
            *("--dsn", server.dsn("trunkline")),
            TRUNKLINE_BENCH_CACHE=str(CACHE),
        )
    )
    assert figures.keys() >= AGAINST_PGQUEUER
    assert {key: figures[key] for key in AGAINST_PGQUEUER if not figures[key] > 0} == {}
    assert figures["drain_pgqueuer_lost"] == 0
    assert figures["drain_pgqueuer_repeated"] == 0
    assert figures["pgqueuer"] == "1.6.0"
    assert databases_left(server, figures) == []


def test_drivers_are_compared() -> None:
    figures = figures_of(run_bench("drivers", "--quick"))
    for form in ("text", "binary", "lean", "calls", "document", "asyncpg"):
        for loop in ("asyncio", "uvloop"):
            assert figures[f"hot_path_{form}_{loop}_500"] > 0
            assert figures[f"hot_path_{form}_{loop}_500_cpu"] > 0


def test_a_slate_counts_how_often_each_job_ran(tmp_path: Path) -> None:
    slate = Slate.create(tmp_path / "slate", 4)
    assert slate.unstarted == 4
    # As another process would: they share the file.
    other = Slate(tmp_path / "slate")
    before = time.monotonic_ns()
    other.note(0)
    other.note(2)
    first = slate.starts[2]
    other.note(2)
    assert slate.unstarted == 2
    assert slate.repeated == 1
    assert slate.starts[2] == first
    assert before <= slate.starts[0] <= first <= time.monotonic_ns()
    assert slate.starts[1] == 0


def contender(*worker: str) -> PostgresContender:
    return PostgresContender(
        key="other",
        name="Other",
        dsn="",
        worker=[sys.executable, *worker],
        producer=[],
        is_empty="",
        ended="",
        forget="",
    )


def test_a_worker_that_ends_early_is_reported_with_its_last_output(tmp_path: Path) -> None:
    dying = contender("-c", "raise SystemExit('no such queue')")
    with (
        pytest.raises(RuntimeError, match="Other's worker ended too early: no such queue"),
        working(dying, tmp_path / "slate") as worker,
    ):
        wait_for(lambda: False, worker, seconds=30)


def test_a_worker_that_fails_at_its_end_is_reported(tmp_path: Path) -> None:
    code = (
        "import signal, sys, pathlib\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        "signal.pause()"
    )
    ready = tmp_path / "ready"
    with (
        pytest.raises(RuntimeError, match="ended with 3"),
        working(contender("-c", code, str(ready)), tmp_path / "slate") as worker,
    ):
        wait_for(ready.exists, worker, seconds=30)


def test_memory_and_time_are_those_of_the_whole_family(tmp_path: Path) -> None:
    # The parent only waits; its child takes the memory and the processor time.
    child = (
        "import pathlib, sys, time\n"
        "taken = bytearray(b'x') * 60_000_000\n"
        "while time.process_time() < 0.3: pass\n"
        "pathlib.Path(sys.argv[1]).touch()\n"
        "time.sleep(60)"
    )
    parent = (
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', *sys.argv[1:]])\n"
        "signal.signal(signal.SIGTERM, lambda *_: (child.kill(), sys.exit(0)))\n"
        "child.wait()"
    )
    ready = tmp_path / "ready"
    with working(contender("-c", parent, child, str(ready)), tmp_path / "slate") as worker:
        wait_for(ready.exists, worker, seconds=30)
        assert len(worker.processes) == 2
        assert 60 < worker.memory < worker.memory_in_all
        assert worker.cpu_seconds >= 0.25
