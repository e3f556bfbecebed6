"""``trunkline jobs``: list jobs, show them and change them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import click

from trunkline import Trunkline
from trunkline.cli import bulk, job_options, job_views, options, verbs
from trunkline.cli.connection import opened
from trunkline.cli.explaining import relevant, sentence
from trunkline.cli.job_lists import job_columns, list_jobs
from trunkline.cli.listing import list_rows
from trunkline.cli.output import STATE_STYLES, clean, count, moment, print_json
from trunkline.cli.tables import Column
from trunkline.cli.tail import tail
from trunkline.model import Enqueued, StateCount

__all__ = ["jobs"]

_PRIORITY = click.IntRange(-50, 49)
_EMPTY = "No job matches."


@click.group()
def jobs() -> None:
    """Jobs: list, count, show, tail, enqueue, change, explain."""


jobs.add_command(tail)


@jobs.command(
    "list",
    epilog=options.examples(
        "trunkline jobs list",
        "trunkline jobs list --state running --state ready --queue mail",
        "trunkline jobs list --tag spring --created-after 2h",
        "trunkline jobs list --task send --limit 500 --json | jq '.[].job_id'",
        "trunkline jobs list --watch",
    ),
)
@options.with_options(
    job_options.job_filter,
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
    """List jobs, newest first.

    The command for the next page is printed last. Searches by tag, correlation id and time are
    quick. Other filters search the newest 20,000 jobs of each kind.
    """
    list_jobs(
        ctx,
        lambda operator: operator.jobs.find,
        job_columns,
        values=values,
        limit=limit,
        cursor=cursor,
        empty=_EMPTY,
        watch=watch,
        dsn=dsn,
        as_json=as_json,
    )


@jobs.command(
    "count",
    epilog=options.examples(
        "trunkline jobs count", "trunkline jobs count --tag spring --finished-after 1d"
    ),
)
@options.with_options(job_options.job_filter, options.watch, options.dsn, options.as_json)
def count_(*, watch: bool, dsn: str | None, as_json: bool, **values: Any) -> None:
    """Count jobs by state.

    Each number goes up to 10,000; a plus means that many or more.
    """
    columns: list[Column[StateCount]] = [
        Column("STATE", lambda row: row.state, lambda row: STATE_STYLES[row.state]),
        Column(
            "JOBS",
            lambda row: f"{row.jobs:,}{'+' if row.more else ''}",
            lambda row: "" if row.jobs else "dim",
            right=True,
        ),
    ]
    list_rows(
        dsn,
        lambda operator: operator.jobs.count(job_options.read_filter(operator, values)),
        lambda _now, _out: columns,
        empty=_EMPTY,
        watch=watch,
        as_json=as_json,
    )


@jobs.command(
    epilog=options.examples(
        "trunkline jobs show 0199c2f0-6d5e-7a41",
        "trunkline jobs show ID --watch",
        "trunkline jobs show ID --json | jq .result",
    )
)
@options.with_options(job_options.job_id, options.watch, options.dsn, options.as_json)
def show(*, job_id: str, watch: bool, dsn: str | None, as_json: bool) -> None:
    """Show a job with its payload, result and errors.

    --watch updates it until the job has ended.
    """
    with opened(dsn) as session:
        job = session.operator.jobs.resolve(job_id)
        job_views.show_one(session, job, watch=watch, as_json=as_json)


@jobs.command(
    epilog=options.examples(
        'trunkline jobs enqueue send \'{"to": "ada@example.org"}\'',
        "trunkline jobs enqueue send -a to=ada@example.org -a copies=2",
        "trunkline jobs enqueue report @report.json --delay 10m --unique-key report",
        "trunkline jobs enqueue ask -a question=why --cost tokens=1200",
        "trunkline jobs enqueue send -a to=you --wait --timeout 30s --json",
    )
)
@click.argument("task", metavar="TASK")
@click.argument("payload", metavar="[JSON]", required=False, type=options.PAYLOAD)
@click.option(
    "-a",
    "--argument",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="One argument; a value that is not JSON is text. May be repeated.",
)
@click.option("--queue", metavar="NAME", help="Instead of the queue of the task.")
@click.option("--priority", type=_PRIORITY, help="The larger one goes first.")
@click.option("--delay", type=options.DURATION, metavar="TIME", help="Start it this much later.")
@click.option("--at", "run_at", type=options.TIME, metavar="TIME", help="Not before this time.")
@click.option(
    "--expires",
    type=options.DEADLINE,
    metavar="TIME",
    help="Cancel it if it has not started by this time or within a duration, 10m.",
)
@click.option(
    "--unique-key", metavar="KEY", help="While a live job of the task holds it, get that job."
)
@click.option(
    "--idempotency-key", metavar="KEY", help="Repeat the same request without a second job."
)
@click.option("--tenant", metavar="NAME")
@click.option("--correlation-id", metavar="TEXT", help="In every log line of the job.")
@click.option("--max-attempts", type=click.IntRange(1, 1000), help="Instead of the task's own.")
@click.option("--tag", "tags", multiple=True, metavar="TEXT", help="May be repeated.")
@click.option(
    "--cost",
    "costs",
    multiple=True,
    metavar="NAME=NUMBER",
    help="What it takes of its limits: requests, tokens or units. May be repeated.",
)
@click.option(
    "--accepted",
    is_flag=True,
    default=None,
    help="Wait where a new job is refused: full or paused queue, full limit, spent quota.",
)
@click.option("--wait", is_flag=True, help="Until it has ended; the exit code is 0 if completed.")
@click.option("--timeout", type=options.DURATION, metavar="TIME", help="Wait no longer than this.")
@options.with_options(options.dsn, options.as_json)
def enqueue(
    *,
    task: str,
    payload: dict[str, Any] | None,
    arguments: tuple[str, ...],
    run_at: datetime | None,
    tags: tuple[str, ...],
    costs: tuple[str, ...],
    wait: bool,
    timeout: float | None,
    dsn: str | None,
    as_json: bool,
    **fields: Any,
) -> None:
    """Enqueue one job of a task, by name.

    JSON is the object of arguments: its text, @FILE, or - for standard input.
    """
    if fields["delay"] is not None and run_at is not None:
        raise click.UsageError("Pass --delay or --at, not both.")
    if timeout is not None and not wait:
        raise click.UsageError("--timeout is for --wait.")
    document = {**(payload or {}), **_named(arguments)}
    fields |= {"run_at": run_at, "tags": list(tags) or None, "cost": _named(costs) or None}
    with opened(dsn) as session, Trunkline(session.target, connections=1).sync as client:
        job = client.jobs.enqueue(task, document, **fields)
        answer = Enqueued(job.id, job.created, job.state, job.run_at)
        if not wait:
            print_json(answer) if as_json else click.echo(_enqueued(answer))
            return
        if not as_json:
            click.echo(f"{job.id}  {job.state}", err=True)
        result = job.wait(timeout)
        print_json(job.get() if as_json else result)


@jobs.command(
    epilog=options.examples(
        "trunkline jobs cancel ID ID --reason 'sent by mistake'",
        "trunkline jobs cancel --task send --tag spring --dry-run",
        "trunkline jobs cancel --queue mail --created-before 1d --yes",
    )
)
@bulk.choices(job_options.job_filter)
@click.pass_context
def cancel(ctx: click.Context, /, **values: Any) -> None:
    """Cancel jobs by their ids or by a filter.

    Waiting jobs are cancelled at once; the workers of running ones are asked to stop. A filter
    changes 1,000 jobs at a time. Ctrl-C stops after the current batch and prints the command that
    continues.
    """
    bulk.carry_out(ctx, values, verbs.cancel())


@jobs.command(
    epilog=options.examples(
        "trunkline jobs retry ID",
        "trunkline jobs retry --task send --error timeout --dry-run",
        "trunkline jobs retry --state cancelled --tag spring",
    )
)
@bulk.choices(
    job_options.job_filter,
    click.option("--fresh", is_flag=True, help="Run the recorded steps of dead letters again."),
)
@click.pass_context
def retry(ctx: click.Context, /, *, fresh: bool, **values: Any) -> None:
    """Run ended jobs again by ids or by a filter.

    Dead letters keep their ids and get all their attempts again; finished jobs become new ones, and
    a filter includes them only if it names their state. Dead letters keep their recorded steps.
    """
    bulk.carry_out(ctx, values, verbs.retry(fresh=fresh))


@jobs.command(
    "reset-step",
    epilog=options.examples(
        "trunkline jobs reset-step ID ocr --reason 'wrong model'",
        "trunkline jobs reset-step ID ocr --key '#2'",
    ),
)
@click.argument("job", metavar="ID")
@click.argument("step", metavar="STEP")
@click.option("--key", metavar="KEY", help="One call of the step, as `jobs show` lists it.")
@options.with_options(options.reason, options.dsn, options.as_json)
def reset_step(
    *, job: str, step: str, key: str | None, reason: str | None, dsn: str | None, as_json: bool
) -> None:
    """Delete a recorded step, so that it runs again.

    The job must not be running. Without --key, all calls of the step are deleted.
    """
    with opened(dsn) as session:
        found = session.operator.jobs.resolve(job)
        number = session.operator.jobs.reset_step(found, step, key=key, reason=reason)
    if as_json:
        print_json({"job_id": found, "step": step, "key": key, "deleted": number})
    else:
        click.echo(f"{found}  {count(number, 'recorded step')} of {clean(step)} deleted")


@jobs.command(
    epilog=options.examples(
        "trunkline jobs reprioritise ID --priority 10",
        "trunkline jobs reprioritise --tenant acme --priority -5 --dry-run",
    )
)
@bulk.choices(
    job_options.job_filter,
    click.option("--priority", type=_PRIORITY, required=True, help="The larger one goes first."),
)
@click.pass_context
def reprioritise(ctx: click.Context, /, priority: int, **values: Any) -> None:
    """Change the priority of waiting jobs.

    They are named by their ids or by a filter. A job moves to the end of its new priority.
    """
    bulk.carry_out(ctx, values, verbs.reprioritise(priority))


@jobs.command(
    epilog=options.examples(
        "trunkline jobs discard ID", "trunkline jobs discard --tag spring --dry-run"
    )
)
@bulk.choices(job_options.dead_filter)
@click.pass_context
def discard(ctx: click.Context, /, **values: Any) -> None:
    """Delete dead letters by ids or by a filter."""
    bulk.carry_out(ctx, values, verbs.discard())


@jobs.command(epilog=options.examples("trunkline jobs explain ID"))
@options.with_options(job_options.job_id, options.dsn, options.as_json)
def explain(*, job_id: str, dsn: str | None, as_json: bool) -> None:
    """Explain why a job is not running, and until when."""
    with opened(dsn) as session:
        job = session.operator.jobs.resolve(job_id)
        explanations = session.operator.jobs.explain(job)
        now = session.operator.now()
    if as_json:
        print_json(explanations)
        return
    for explanation in relevant(explanations):
        click.echo(sentence(job, explanation, now))


def _enqueued(answer: Enqueued) -> str:
    if not answer.created:
        return f"{answer.job_id}  {answer.state} already: the key belongs to this job"
    later = f", due {moment(answer.run_at)}" if answer.state == "scheduled" else ""
    return f"{answer.job_id}  {answer.state}{later}"


def _named(arguments: tuple[str, ...]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for argument in arguments:
        name, mark, value = argument.partition("=")
        if not name or not mark:
            raise click.UsageError(f"{argument!r} is not NAME=VALUE.")
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return values
