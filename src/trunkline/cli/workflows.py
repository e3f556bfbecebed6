"""``trunkline workflows``: graphs of jobs, their steps and their progress."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import click

from trunkline.cli import options, workflow_views
from trunkline.cli.actions import change, confirm
from trunkline.cli.command_line import continued
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, count, print_json
from trunkline.model import ChangedWorkflow, StartedWorkflow, WorkflowState, WorkflowStatus
from trunkline.operate import SyncOperator

__all__ = ["workflows"]

_workflow = click.argument("workflow", metavar="ID")


@click.group()
def workflows() -> None:
    """Workflows: graphs of jobs. ID is the id of a workflow, or its first 8 digits or more."""


@workflows.command(
    "list",
    epilog=options.examples(
        "trunkline workflows list",
        "trunkline workflows list --name report --state failed",
        "trunkline workflows list --watch",
        "trunkline workflows list --json | jq '.[].progress.percent'",
    ),
)
@click.option("--name", metavar="NAME", help="Only workflows of this name.")
@click.option(
    "--state",
    "states",
    type=click.Choice([state.value for state in WorkflowState]),
    multiple=True,
    help="Only this state; may be repeated.",
)
@click.option("--tenant", metavar="NAME", help="Only this tenant.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="At most so many."
)
@click.option("--cursor", metavar="TEXT", help="Continue where an earlier call ended.")
@options.with_options(options.watch, options.dsn, options.as_json)
@click.pass_context
def list_(
    ctx: click.Context,
    /,
    *,
    name: str | None,
    states: tuple[str, ...],
    tenant: str | None,
    limit: int,
    cursor: str | None,
    watch: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """List workflows with their progress, newest first.

    The command for the next page is printed last.
    """
    last: UUID | None = None

    def ask(operator: SyncOperator) -> list[WorkflowStatus]:
        nonlocal last
        rows = operator.workflows.list(
            name=name,
            states=[WorkflowState(state) for state in states] or None,
            tenant=tenant,
            limit=limit,
            before=cursor,
        )
        last = rows[-1].id if len(rows) == limit else None
        return rows

    list_rows(
        dsn,
        ask,
        workflow_views.columns,
        empty="No workflow matches.",
        watch=watch,
        as_json=as_json,
        document=lambda rows: [workflow_views.document(row) for row in rows],
    )
    if last is None or watch:
        return
    if as_json:
        print_json({"next": str(last)}, err=True)
    else:
        click.echo(f"Next page: {continued(ctx, str(last))}", err=True)


@workflows.command(
    epilog=options.examples(
        "trunkline workflows show ID",
        "trunkline workflows show ID --watch",
        "trunkline workflows show ID --json | jq .progress.percent",
    )
)
@_workflow
@options.with_options(options.watch, options.dsn, options.as_json)
def show(*, workflow: str, watch: bool, dsn: str | None, as_json: bool) -> None:
    """Show a workflow with one line for each step."""
    with opened(dsn) as session:
        known = session.operator.workflows.resolve(workflow)
        workflow_views.show_one(session, known, watch=watch, as_json=as_json)


@workflows.command(
    epilog=options.examples(
        "trunkline workflows graph ID > graph.mmd",
        "trunkline workflows graph ID --dot | dot -Tsvg > graph.svg",
    )
)
@_workflow
@click.option("--dot", is_flag=True, help="For Graphviz, instead of Mermaid.")
@options.with_options(options.dsn, options.as_json)
def graph(*, workflow: str, dot: bool, dsn: str | None, as_json: bool) -> None:
    """Print the steps and their dependencies as a Mermaid diagram."""
    with opened(dsn) as session:
        operator = session.operator
        status = operator.workflows.get(operator.workflows.resolve(workflow))
    if as_json:
        edges = [[other, step.name] for step in status.steps for other in step.after]
        print_json({"steps": [step.name for step in status.steps], "edges": edges})
    else:
        click.echo(workflow_views.dot(status) if dot else workflow_views.mermaid(status))


@workflows.command(
    epilog=options.examples("trunkline workflows cancel ID --reason 'ordered twice'")
)
@_workflow
@options.with_options(options.reason, options.dsn, options.as_json)
def cancel(*, workflow: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Cancel waiting jobs and ask running ones to stop."""

    def message(changed: ChangedWorkflow) -> str:
        match changed.outcome:
            case "ended":
                return f"Workflow {changed.workflow_id} had ended before: {changed.state}."
            case "requested":
                return (
                    f"Workflow {changed.workflow_id} is being cancelled. Its running jobs were "
                    "asked to stop."
                )
        return f"Workflow {changed.workflow_id} cancelled."

    _change(
        workflow,
        lambda operator, known: operator.workflows.cancel(known, reason=reason),
        message,
        dsn=dsn,
        as_json=as_json,
    )


@workflows.command(epilog=options.examples("trunkline workflows retry ID"))
@_workflow
@options.with_options(options.reason, options.dsn, options.as_json)
def retry(*, workflow: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Run the failed part again, with what depends on it."""
    _change(
        workflow,
        lambda operator, known: operator.workflows.retry(known, reason=reason),
        lambda changed: (
            f"Workflow {changed.workflow_id} runs again: {count(changed.jobs, 'job')} replayed."
        ),
        dsn=dsn,
        as_json=as_json,
    )


@workflows.command(
    epilog=options.examples(
        "trunkline workflows rerun ID", "trunkline workflows rerun ID --from-step join"
    )
)
@_workflow
@click.option("--from-step", metavar="NAME", help="Completed steps before it keep their results.")
@options.with_options(options.reason, options.dsn, options.as_json)
def rerun(
    *, workflow: str, from_step: str | None, reason: str | None, dsn: str | None, as_json: bool
) -> None:
    """Start an ended workflow again as a new one."""

    def message(started: StartedWorkflow) -> str:
        return f"Workflow {started.workflow_id} started with {count(started.jobs, 'job')}."

    _change(
        workflow,
        lambda operator, known: operator.workflows.rerun(known, from_step=from_step, reason=reason),
        message,
        dsn=dsn,
        as_json=as_json,
    )


@workflows.command(epilog=options.examples("trunkline workflows delete ID --yes"))
@_workflow
@options.with_options(options.reason, options.yes, options.dsn, options.as_json)
def delete(*, workflow: str, reason: str | None, yes: bool, dsn: str | None, as_json: bool) -> None:
    """Delete an ended workflow with its jobs and results."""
    confirm(f"Delete workflow {clean(workflow)} with all its jobs and results?", yes=yes)
    _change(
        workflow,
        lambda operator, known: operator.workflows.delete(known, reason=reason),
        lambda changed: (
            f"Workflow {changed.workflow_id} deleted with {count(changed.jobs, 'job')}."
        ),
        dsn=dsn,
        as_json=as_json,
    )


def _change(
    workflow: str,
    action: Callable[[SyncOperator, UUID], Any],
    message: Callable[[Any], str],
    *,
    dsn: str | None,
    as_json: bool,
) -> None:
    change(
        lambda operator: action(operator, operator.workflows.resolve(workflow)),
        message,
        lambda changed: changed,
        dsn=dsn,
        as_json=as_json,
    )
