"""``trunkline bench``: figures, and nothing left behind."""

from __future__ import annotations

import pytest

from tests.cli.driving import Cli
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.internals import rows
from trunkline.db.calls import work


def test_figures(cli: Cli, calls: Calls, database: Database) -> None:
    def traces() -> object:
        return [
            rows.count(database.superuser(), table)
            for table in ("waiting", "running", "finished", "dead", "lanes", "tasks", "events")
        ]

    before = traces()
    found = cli.json("bench", "--jobs", 100, "--batch", 20)
    assert (found["jobs"], found["taken_by_others"], found["cleaned_up"]) == (110, 0, True)
    for name in ("enqueue_per_second", "bulk_per_second", "work_per_second"):
        assert found[name] > 0
    assert 0 < found["enqueue_ms"]["p50"] <= found["enqueue_ms"]["p99"]
    assert traces() == before
    shown = cli.text("bench", "--jobs", 10, "--batch", 10)
    assert "claim + complete" in shown
    assert traces() == before


def test_it_cleans_up_when_interrupted(
    cli: Cli, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_arguments: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(work, "claim", interrupted)
    result = cli.run("bench", "--jobs", 50)
    assert result.exit_code == 1
    assert "Aborted" in result.stderr
    assert cli.json("jobs", "list") == []
    assert {row["task"] for row in cli.json("tasks", "list")} == {"once", "send", "watched"}


def test_a_role_that_may_not_remove_rows_is_reported(calls: Calls, database: Database) -> None:
    admin = database.superuser()
    admin.execute("create role measurer login")
    admin.execute("grant trunkline_producer, trunkline_worker, trunkline_operator to measurer")
    try:
        as_operator = Cli(database.superuser_dsn.replace("//postgres", "//measurer", 1))
        result = as_operator.run("bench", "--jobs", 20)
        assert result.exit_code == 0
        assert "22 finished jobs of queue trunkline_bench_" in result.stderr
        assert as_operator.json("jobs", "list", "--state", "ready") == []
    finally:
        admin.execute("drop role measurer")
