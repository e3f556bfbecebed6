"""The suite of recorded steps runs and prints its figures."""

import pytest

from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server


@pytest.mark.slow
def test_the_suite_prints_its_figures(server: Server) -> None:
    result = run_bench("steps", "--quick", "--no-rivals", "--dsn", server.dsn("trunkline"))
    figures = figures_of(result)
    assert databases_left(server, figures) == []
    keys = ("step_ms_alone", "step_ms_shared", "ten_step_jobs_per_second")
    assert all(figures[key] > 0 for key in keys)
