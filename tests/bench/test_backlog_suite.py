"""The suite backlog runs, and measures every view, function and command."""

from bench.backlog import reads
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server


def test_the_suite_runs_with_sizes_of_your_own(server: Server) -> None:
    sizes = ("--quick", "--waiting", "900", "--finished", "500")
    figures = figures_of(run_bench("backlog", *sizes, TRUNKLINE_BENCH_DSN=server.dsn("trunkline")))
    assert {"trunkline.queues", "trunkline.health()", "clinical.metrics"} <= set(figures)
    assert {f"trunkline {command}" for command in reads.commands()} <= set(figures)
    assert databases_left(server, figures) == []
