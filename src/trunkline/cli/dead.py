"""``trunkline dead``: jobs that failed for good, kept until somebody decides."""

from __future__ import annotations

from typing import Any

import click

from trunkline.cli import bulk, job_options, job_views, options, verbs
from trunkline.cli.connection import opened
from trunkline.cli.job_lists import dead_columns, group_columns, list_jobs
from trunkline.cli.listing import list_rows
from trunkline.cli.output import print_json
from trunkline.cli.payloads import edited, handled_task
from trunkline.errors import WrongState
from trunkline.model import Job, JobState

__all__ = ["dead"]

_EMPTY = "No dead letter matches."


@click.group()
def dead() -> None:
    """Dead letters: jobs that used up their attempts or were refused for good."""


@dead.command(
    "list",
    epilog=options.examples(
        "trunkline dead list",
        "trunkline dead list --task send --unacknowledged",
        "trunkline dead list --group 3f9a01c2 --finished-after 1d",
        "trunkline dead list --json | jq -r '.[].last_error.message'",
    ),
)
@options.with_options(
    job_options.dead_filter,
    job_options.limit,
    job_options.cursor,
    options.watch,
    options.dsn,
    options.as_json,
)
@click.pass_context
def list_(
    ctx: click.Context,
    /,
    *,
    limit: int,
    cursor: str | None,
    watch: bool,
    dsn: str | None,
    as_json: bool,
    **values: Any,
) -> None:
    """List dead letters, newest first.

    The command for the next page is printed last.
    """
    list_jobs(
        ctx,
        lambda operator: operator.dead.find,
        dead_columns,
        values=values,
        limit=limit,
        cursor=cursor,
        empty=_EMPTY,
        watch=watch,
        dsn=dsn,
        as_json=as_json,
    )


@dead.command(
    epilog=options.examples(
        "trunkline dead groups",
        "trunkline dead groups --task send --finished-after 1d",
        "trunkline dead replay --group GROUP --rate 5/s --stop-at 10%",
    )
)
@options.with_options(
    job_options.dead_filter, job_options.limit, options.watch, options.dsn, options.as_json
)
def groups(*, limit: int, watch: bool, dsn: str | None, as_json: bool, **values: Any) -> None:
    """Group dead letters by error, largest first.

    Quoted texts, UUIDs and numbers in an error make no difference. A plus means that the
    group has at least that many. Other commands take the GROUP, or the start of it, as --group.
    """
    list_rows(
        dsn,
        lambda operator: operator.dead.groups(
            job_options.read_filter(operator, values), limit=limit
        ),
        group_columns,
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@dead.command(epilog=options.examples("trunkline dead show ID", "trunkline dead show ID --json"))
@options.with_options(job_options.job_id, options.dsn, options.as_json)
def show(*, job_id: str, dsn: str | None, as_json: bool) -> None:
    """Show a dead letter with the errors of its attempts."""
    with opened(dsn) as session:
        job = session.operator.jobs.get(session.operator.jobs.resolve(job_id))
        _check_dead(job)
        job_views.show_one(session, job.id, watch=False, as_json=as_json)


@dead.command(
    epilog=options.examples(
        "trunkline dead edit ID",
        'trunkline dead edit ID \'{"to": "ada@example.org"}\' --app shop.jobs:app',
        "trunkline dead edit ID @payload.json --reason 'wrong address'",
    )
)
@job_options.job_id
@click.argument("payload", metavar="[JSON]", required=False, type=options.PAYLOAD)
@click.option(
    "--app", metavar="APP", help="Check the payload with the handler in module:variable first."
)
@options.with_options(options.reason, options.dsn, options.as_json)
def edit(
    *,
    job_id: str,
    payload: dict[str, Any] | None,
    app: str | None,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Run a dead letter again with another payload.

    JSON is the new payload: its text, @FILE, or - for standard input. Without it, the editor in
    $VISUAL or $EDITOR opens with the present payload. If the new payload is refused, the dead
    letter stays as it was, and the file from the editor is kept.
    """
    with opened(dsn) as session:
        operator = session.operator
        job = operator.jobs.get(operator.jobs.resolve(job_id))
        _check_dead(job)
        task = None if app is None else handled_task(app, job.task)
        with edited(job, payload) as document:
            if document is None:
                click.echo("Payload not changed. The dead letter stays as it is.", err=True)
                return
            answer = operator.dead.retry_edited(job.id, document, task=task, reason=reason)
    if as_json:
        print_json(answer)
    else:
        click.echo(f"{answer.job_id}  {answer.state} with the new payload")


@dead.command(
    epilog=options.examples(
        "trunkline dead replay ID ID",
        "trunkline dead replay --task send --dry-run",
        "trunkline dead replay --group 3f9a01c2 --rate 5/s --stop-at 10%",
    )
)
@bulk.choices(
    job_options.dead_filter,
    click.option(
        "--rate", metavar="RATE", type=job_options.RATE, help="At most 5/s, 30/m, 1000/h."
    ),
    click.option(
        "--stop-at",
        metavar="PERCENT",
        type=job_options.SHARE,
        help="With --rate: stop when more than 10% have failed again.",
    ),
    click.option(
        "--at-least",
        type=click.IntRange(min=1),
        default=20,
        show_default=True,
        help="With --stop-at: replay at least this many before stopping.",
    ),
)
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    *,
    rate: float | None,
    stop_at: float | None,
    at_least: int,
    **values: Any,
) -> None:
    """Run dead letters again by ids or by a filter.

    They get all their attempts again. Without --rate, a filter replays 1,000 at a time. Ctrl-C
    stops after the current batch, or within a second between two batches, and prints the command
    that continues. The exit code is 1 if more than --stop-at have failed again, also when too few
    were replayed to stop it. With --stop-at, the end waits up to ten seconds for the last jobs;
    failures after that do not count.
    """
    if rate is None and stop_at is not None:
        raise click.UsageError("--stop-at is for --rate, which gives jobs time to fail.")
    if rate is not None and values["job_ids"]:
        raise click.UsageError("--rate is for a filter; ids are replayed at once.")
    verb = verbs.replay() if rate is None else verbs.paced(rate, stop_at, at_least)
    bulk.carry_out(ctx, values, verb)


@dead.command(
    epilog=options.examples(
        "trunkline dead discard ID --reason 'no longer wanted'",
        "trunkline dead discard --task old_report --acknowledged",
        "trunkline dead discard --all --dry-run",
    )
)
@bulk.choices(job_options.dead_filter)
@click.pass_context
def discard(ctx: click.Context, /, **values: Any) -> None:
    """Delete dead letters by ids or by a filter."""
    bulk.carry_out(ctx, values, verbs.discard())


@dead.command(
    epilog=options.examples(
        "trunkline dead acknowledge ID ID", "trunkline dead acknowledge --group 3f9a01c2 --dry-run"
    )
)
@bulk.choices(job_options.dead_filter)
@click.pass_context
def acknowledge(ctx: click.Context, /, **values: Any) -> None:
    """Mark dead letters as seen by ids or by a filter.

    Dead letters that were seen are removed a month later (setting dead_retention).
    """
    bulk.carry_out(ctx, values, verbs.acknowledge())


def _check_dead(job: Job) -> None:
    if job.state is not JobState.DEAD:
        raise WrongState(
            "the job is not a dead letter",
            detail={"job": str(job.id), "state": str(job.state)},
            hint=f"See it with: trunkline jobs show {job.id}",
        )
