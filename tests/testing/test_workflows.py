"""Workflows in tests of users' own handlers, on the real engine."""

import pytest

from trunkline import Results, Trunkline
from trunkline.testing import Sandbox


@pytest.mark.parametrize(("count", "jobs", "result"), [(5, 7, 20), (0, 2, 0)])
def test_a_drain_runs_a_workflow_with_its_maps(count: int, jobs: int, result: int) -> None:
    app = Trunkline()

    @app.task
    def numbers(count: int) -> list[int]:
        return list(range(count))

    @app.task
    def double(number: int) -> int:
        return 2 * number

    @app.task
    def add(numbers: Results[int]) -> int:
        return sum(numbers)

    with Sandbox(app) as sandbox:
        order = app.workflow("sum")
        doubled = order.map(order.add(numbers.request(count)).result, double.request)
        total = order.add(add.request(doubled.results))
        run = order.sync.start()
        assert sandbox.drain().completed == jobs
        assert run.wait(timeout=0).state == "completed"
        assert run.result(total) == result
        assert sandbox.run_inline(add.request(Results([1, 2]))) == 3
