"""The measures of profile studio run from end to end."""

import pytest

from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server


@pytest.mark.slow
def test_claims_of_the_studio_are_measured_against_20_ms(server: Server) -> None:
    """TA-20."""
    result = run_bench("studio", "--quick", TRUNKLINE_BENCH_DSN=server.dsn("trunkline"))
    figures = figures_of(result)
    assert 0 < figures["studio_claim_p50"] <= figures["studio_claim_p95"]
    assert "goal at most 20" in result.stdout
    assert databases_left(server, figures) == []
