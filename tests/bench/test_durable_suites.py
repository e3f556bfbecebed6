"""The suites workflows, steps, live and artifacts run, and write their records."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import bench.__main__ as bench
from bench.sizes import QUICK
from bench.suites import SUITES
from tests.bench.running import databases_left, figures_of, run_bench
from tests.support.servers import Server

PROMISED = {
    "workflows": {
        *("workflow_start", "workflow_drain_ratio", "workflow_unfinished"),
        *("workflow_end_set_wait", "workflow_end_steps_wait"),
    },
    "steps": {"step_ms_alone", "step_ms_shared", "ten_step_jobs_per_second"},
    "live": {"live_latency_p95_ms", "live_idle_mb"},
    "artifacts": {"artifact_upload_vs_copy", "artifact_upload_growth", "archive_growth"},
}


@pytest.mark.slow
@pytest.mark.parametrize("suite", PROMISED)
def test_the_suite_measures_what_the_readme_promises(server: Server, suite: str) -> None:
    figures = figures_of(
        run_bench(suite, "--quick", "--no-rivals", "--dsn", server.dsn("trunkline"))
    )
    assert figures.keys() >= PROMISED[suite]
    assert isinstance(figures["missed"], list)
    assert databases_left(server, figures) == []
    page = (Path(bench.__file__).parent / "README.md").read_text()
    assert [key for key in PROMISED[suite] if f"`{key}`" not in page] in (
        [],
        # Without a goal, it needs no line.
        ["ten_step_jobs_per_second"],
    )


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_over_60_mb_is_a_missed_goal(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A complete run writes its record; a run of one measure does not."""
    small = replace(SUITES["artifacts"], sizes=QUICK)
    monkeypatch.setitem(SUITES, "artifacts", small)
    monkeypatch.setattr(bench, "_RESULTS", tmp_path)
    dsn = ("--dsn", server.dsn("trunkline"))
    assert bench.main(["artifacts", *dsn, "--only", "archive"]) == 0
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(
        "bench.artifacts.archive.transfer",
        lambda *_: {"seconds": 1.0, "archive_bytes": 1, "growth_mb": 61.0},
    )
    assert bench.main(["artifacts", *dsn]) == 0
    record = json.loads((tmp_path / "artifacts.json").read_text())
    assert "archive_growth" in record["missed"]
    assert "artifact_upload_growth" not in record["missed"]
    assert record["artifact_mb"] == QUICK.artifacts.mb


def test_the_suites_have_records() -> None:
    for name in PROMISED:
        assert SUITES[name].record == f"{name}.json"
