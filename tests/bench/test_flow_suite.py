"""The measures of limits run from end to end, and use of capacity is computed correctly."""

import math

import pytest

from bench.flow.fire import judge
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server
from trunkline_profiles.clinical.stubs.limits import Call

PROMISED = {
    "fairness_delay_most",
    "limits_accuracy_calm_hour",
    "limits_accuracy_calm_minute",
    "limits_accuracy_calm_over",
    "limits_accuracy_killed_hour",
    "limits_accuracy_killed_minute",
    "limits_accuracy_killed_over",
    "limits_held_ratio",
    "limits_keys_log_rate_more",
    "limits_keys_log_slots_more",
    "limits_keys_rate_2_ratio",
    "limits_keys_slots_2_ratio",
    "limits_spent_ratio",
    "limits_wide_rate_2_ratio",
    "limits_wide_rate_4_ratio",
    "limits_wide_slots_2_ratio",
    "limits_wide_slots_4_ratio",
}


@pytest.mark.slow
def test_every_measure_of_limits_runs(server: Server) -> None:
    result = run_bench("flow", "--quick", TRUNKLINE_BENCH_DSN=server.dsn("trunkline"))
    figures = figures_of(result)
    assert figures.keys() >= PROMISED
    numbers = {key: value for key, value in figures.items() if isinstance(value, float)}
    assert [key for key, value in numbers.items() if not math.isfinite(value)] == []
    assert figures["limits_wide_faults"] == 0
    assert figures["limits_accuracy_calm_over"] == figures["limits_accuracy_killed_over"] == 0
    assert figures["limits_accuracy_killed_kills"] > 0
    assert figures["fairness_delay_most"] <= 1
    assert databases_left(server, figures) == []


def test_use_of_a_minute_is_judged_up_to_the_last_opening() -> None:
    """Two full windows of ten, opened 62 s apart; the third has only begun."""
    calls = [
        Call(at=62.0 * window + number / 10, tokens=5, at_once=1)
        for window, count in enumerate((10, 10, 3))
        for number in range(count)
    ]
    minute, hour = judge(calls, {"requests_per_minute": 10, "requests_per_hour": 46})
    assert minute == pytest.approx(20 / (10 * 124 / 60))
    assert hour == 0.5


def test_whatever_binds_is_what_was_used() -> None:
    """Tokens reached their limit long before requests did."""
    calls = [Call(at=at, tokens=40, at_once=1) for at in (0.0, 0.5, 62.0)]
    limits = {"requests_per_minute": 100, "tokens_per_minute": 80, "requests_per_hour": 6}
    minute, hour = judge(calls, limits)
    assert minute == pytest.approx(60 / 62)
    assert hour == 0.5


def test_each_window_is_judged_by_what_bound_it() -> None:
    """Requests filled the first window, tokens the second."""
    sizes = [(0.0, 10), (0.1, 10), (62.0, 90), (124.0, 1)]
    calls = [Call(at=at, tokens=tokens, at_once=1) for at, tokens in sizes]
    limits = {"requests_per_minute": 2, "tokens_per_minute": 90, "requests_per_hour": 100}
    assert judge(calls, limits)[0] == pytest.approx(2 * 60 / 124)


def test_calls_that_no_limit_ever_held_back_prove_nothing() -> None:
    assert judge([Call(at=0.1, tokens=1, at_once=1)], {"requests_per_hour": 10})[0] == 0
