"""``trunkline workflows``."""

from __future__ import annotations

from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from tests.cli.driving import Cli
from tests.cli.test_80_columns import line_of, screen
from tests.support.calls import Calls
from trunkline.errors import (
    InvalidArgument,
    TrunklineError,
    UnknownWorkflow,
    WrongWorkflowState,
)

GRAPH = {
    "name": "report",
    "tags": ["monthly"],
    "phases": [{"name": "read", "weight": 75}, {"name": "join", "weight": 25}],
    "steps": [
        {"name": "scan", "task": "send", "phase": "read"},
        {"name": "pages", "task": "once", "after": ["scan"], "items": [{}, {}], "phase": "read"},
        {"name": "join the pages", "task": "once", "after": ["pages"], "phase": "join"},
    ],
}


@pytest.fixture
def workflow(calls: Calls) -> UUID:
    """A workflow of three steps, the first of which has completed."""
    return started(calls)


def started(calls: Calls) -> UUID:
    query = "select workflow_id from trunkline.start_workflow(%s)"
    found: UUID = calls.value(query, Jsonb(GRAPH))
    calls.batch("complete", "w", calls.claim("w", 1).attempts)
    return found


def fail_a_page(calls: Calls) -> None:
    failing, completing = calls.claim("w", 2).attempts
    calls.batch("fail", "w", [failing], retryable=[False])
    calls.batch("complete", "w", [completing])


def test_a_list_shows_state_and_progress(cli: Cli, workflow: UUID) -> None:
    (row,) = cli.json("workflows", "list", "--name", "report", "--state", "running")
    assert (row["workflow_id"], row["state"], row["jobs"], row["completed"]) == (
        str(workflow),
        "running",
        4,
        1,
    )
    assert (row["progress"]["percent"], row["progress"]["phase"]) == (25, "read")
    lines = screen(cli, "workflows", "list")
    assert lines[0].split()[:5] == ["WORKFLOW", "NAME", "STATE", "PROGRESS", "JOBS"]
    assert "report" in lines[1]
    assert "25%" in lines[1]
    assert "No workflow matches" in cli.run("workflows", "list", "--state", "failed").stderr


def test_pages_of_a_list_continue(cli: Cli, calls: Calls, workflow: UUID) -> None:
    newer = [str(started(calls)) for _ in range(2)]
    first = cli.run("workflows", "list", "--limit", 2)
    assert "workflows list --limit 2 --cursor" in first.stderr
    cursor = first.stderr.split()[-1]
    rows = cli.json("workflows", "list", "--cursor", cursor)
    assert [row["workflow_id"] for row in rows] == [str(workflow)]
    rows = cli.json("workflows", "list", "--limit", 3)
    assert [row["workflow_id"] for row in rows] == [*reversed(newer), str(workflow)]


def test_one_line_for_each_step(cli: Cli, calls: Calls, workflow: UUID) -> None:
    fail_a_page(calls)
    lines = screen(cli, "workflows", "show", str(workflow)[:13])
    assert line_of(lines, "name").split() == ["name", "report"]
    assert line_of(lines, "state ").split() == ["state", "failed"]
    assert line_of(lines, "progress").split()[-1] == "50%"
    assert line_of(lines, "scan").split()[1:3] == ["completed", "1/1"]
    assert line_of(lines, "pages").split()[1:4] == ["failed", "1/2", "1"]
    assert "cancelled" in line_of(lines, "join the pages")
    assert any(line.startswith("  pages[0]") for line in lines)
    found = cli.json("workflows", "show", workflow)
    assert [step["name"] for step in found["steps"]] == ["scan", "pages", "join the pages"]
    assert found["failed_jobs"][0]["step"] == "pages"


def test_retry_rerun_and_delete(cli: Cli, calls: Calls, workflow: UUID) -> None:
    with pytest.raises(WrongWorkflowState):
        cli.text("workflows", "rerun", workflow)
    fail_a_page(calls)
    assert cli.text("workflows", "retry", workflow, "--reason", "fixed") == (
        f"Workflow {workflow} runs again: 1 job replayed.\n"
    )
    calls.batch("complete", "w", calls.claim("w", 1).attempts)
    calls.batch("complete", "w", calls.claim("w", 1).attempts)
    (row,) = cli.json("workflows", "list")
    assert (row["state"], row["generation"], row["progress"]["percent"]) == ("completed", 2, 100)
    text = cli.text("workflows", "rerun", workflow, "--from-step", "join the pages")
    assert text.endswith("started with 1 job.\n")
    again = text.split()[1]
    with pytest.raises(WrongWorkflowState):
        cli.text("workflows", "delete", workflow, "--yes")
    calls.batch("complete", "w", calls.claim("w", 1).attempts)
    assert cli.run("workflows", "delete", again).exit_code == 2
    assert cli.text("workflows", "delete", again, "--yes").startswith(f"Workflow {again} deleted")
    assert cli.json("workflows", "delete", workflow, "--yes")["outcome"] == "deleted"
    assert cli.json("workflows", "list") == []


def test_cancel(cli: Cli, calls: Calls, workflow: UUID) -> None:
    attempts = calls.claim("w", 2).attempts
    text = cli.text("workflows", "cancel", workflow, "--reason", "ordered twice")
    assert text.startswith(f"Workflow {workflow} is being cancelled.")
    calls.batch("acknowledge_cancel", "w", attempts)
    text = cli.text("workflows", "cancel", workflow)
    assert text == f"Workflow {workflow} had ended before: cancelled.\n"
    assert cli.json("workflows", "show", workflow)["reason"] == "ordered twice"


def test_the_graph_is_printed_for_mermaid_and_graphviz(cli: Cli, workflow: UUID) -> None:
    assert cli.text("workflows", "graph", workflow).splitlines() == [
        "flowchart TD",
        '  s0["scan: completed"]',
        '  s1["pages x 2: open"]',
        "  s0 --> s1",
        '  s2["join the pages: blocked"]',
        "  s1 --> s2",
    ]
    assert '  s1 [label="pages x 2: open"]' in cli.text("workflows", "graph", workflow, "--dot")
    assert cli.json("workflows", "graph", workflow)["edges"] == [
        ["scan", "pages"],
        ["pages", "join the pages"],
    ]


@pytest.mark.parametrize("command", ["show", "cancel", "retry", "rerun", "graph"])
def test_an_unknown_id_is_refused(cli: Cli, workflow: UUID, command: str) -> None:
    for wrong, error in (
        ("6f1c3a1e-0000-7000-8000-000000000000", UnknownWorkflow),
        ("6f1c3a1e", UnknownWorkflow),
        ("report", InvalidArgument),
    ):
        refusal: type[TrunklineError] = error
        with pytest.raises(refusal):
            cli.text("workflows", command, wrong)


def test_explain_names_the_steps_that_a_job_waits_for(
    cli: Cli, calls: Calls, workflow: UUID
) -> None:
    job = calls.value("select job_id from trunkline.jobs where state = 'blocked'")
    text = cli.text("jobs", "explain", job)
    assert "It waits for these steps of its workflow: pages (0 of 2 completed)." in text
    assert f"trunkline workflows show {workflow}" in text


def test_a_job_names_its_workflow_and_step(cli: Cli, calls: Calls, workflow: UUID) -> None:
    attempt = calls.claim("w", 1).attempts[0]
    text = cli.text("jobs", "show", attempt.job)
    assert f"report {workflow}" in text
    assert "pages[0]" in text
    found = cli.json("jobs", "show", attempt.job)
    assert found["workflow"] == {"id": str(workflow), "name": "report", "step": "pages", "item": 0}
