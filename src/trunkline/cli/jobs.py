"""``trunkline jobs``: look at jobs and change them."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from trunkline.cli import options
from trunkline.cli.tail import tail

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.model import ChangedJob, Enqueued

__all__ = ["jobs"]


@click.group()
def jobs() -> None:
    """Jobs: list, show, tail, enqueue, cancel, retry, explain."""


jobs.add_command(tail)


@jobs.command(
    "list",
    epilog=options.examples(
        "trunkline jobs list",
        "trunkline jobs list --state running --state ready --queue mail",
        "trunkline jobs list --task send --limit 500 --json | jq '.[].job_id'",
        "trunkline jobs list --watch",
    ),
)
@click.option(
    "--state", "states", multiple=True, type=click.Choice(options.STATES), help="May be repeated."
)
@click.option("--task", metavar="NAME", help="Only of this task.")
@click.option("--queue", metavar="NAME", help="Only in this queue.")
@click.option("--tenant", metavar="NAME", help="Only of this tenant.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many."
)
@click.option("--before", metavar="ID", type=click.UUID, help="Only older ones: the next page.")
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(
    *,
    states: tuple[str, ...],
    task: str | None,
    queue: str | None,
    tenant: str | None,
    limit: int,
    before: UUID | None,
    watch: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """List jobs, newest first.

    If few jobs match the filter, it searches the newest 20,000 and prints the option to continue.
    """
    from trunkline.cli import job_views  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import read  # noqa: PLC0415 - see above
    from trunkline.model import JobState  # noqa: PLC0415 - see above

    call = read.find_jobs(
        states=[JobState(state) for state in states] or None,
        task=task,
        queue=queue,
        tenant=tenant,
        limit=limit,
        before=before,
    )
    with opened(dsn) as session:
        job_views.show_list(session, call, limit, watch=watch, as_json=as_json)


@jobs.command(
    epilog=options.examples(
        "trunkline jobs show 0199c2f0-6d5e-7a41-9f0b-3c1d2e4f5a6b",
        "trunkline jobs show ID --watch",
        "trunkline jobs show ID --json | jq .result",
    )
)
@options.with_options(options.job_id, options.watch, options.dsn, options.as_json)
def show(*, job_id: UUID, watch: bool, dsn: str | None, as_json: bool) -> None:
    """Show everything about a job; with --watch until it has ended."""
    from trunkline.cli import job_views  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        job_views.show_one(session, job_id, watch=watch, as_json=as_json)


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
    help="One argument; the value is taken as JSON if it is, else as text. May be repeated.",
)
@click.option("--queue", metavar="NAME", help="Instead of the queue of the task.")
@click.option("--priority", type=click.IntRange(-50, 49), help="The larger one goes first.")
@click.option("--delay", type=options.DURATION, metavar="TIME", help="Not before so long, 10m.")
@click.option("--at", "run_at", type=options.TIME, metavar="TIME", help="Not before this time.")
@click.option(
    "--expires",
    "expires_at",
    type=options.DEADLINE,
    metavar="TIME",
    help="Cancel it if it has not started by then: a time, or so long from now, 10m.",
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
    expires_at: datetime | None,
    tags: tuple[str, ...],
    costs: tuple[str, ...],
    wait: bool,
    timeout: float | None,
    dsn: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Enqueue one job of a task, by name.

    JSON is the object of arguments: its text, @FILE, or - for standard input.
    """
    from trunkline.cli import job_views  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above
    from trunkline.model import as_request  # noqa: PLC0415 - see above

    if given["delay"] is not None and run_at is not None:
        raise click.UsageError("Pass --delay or --at, not both.")
    if timeout is not None and not wait:
        raise click.UsageError("--timeout is for --wait.")
    request = as_request(
        {
            "task": task,
            "payload": {**(payload or {}), **_named(arguments)},
            "run_at": None if run_at is None else run_at.isoformat(),
            "expires_at": None if expires_at is None else expires_at.isoformat(),
            "tags": list(tags) or None,
            "cost": _named(costs) or None,
            **given,
        }
    )
    with opened(dsn) as session:
        (made,) = session.ask(produce.enqueue_many([request]))
        if wait:
            job_views.await_end(session, made, timeout, as_json=as_json)
        elif as_json:
            print_json(made)
        else:
            click.echo(_told_enqueued(made))


@jobs.command(
    epilog=options.examples(
        "trunkline jobs cancel ID", "trunkline jobs cancel ID ID --reason 'sent by mistake'"
    )
)
@options.ids
@click.option("--reason", metavar="TEXT", help="Kept with the job.")
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def cancel(
    ctx: click.Context,
    *,
    job_ids: tuple[UUID, ...],
    reason: str | None,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Cancel jobs.

    Waiting ones are cancelled at once, running ones when their workers hear of it.
    """
    from trunkline.cli.actions import each  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above

    def told(changed: ChangedJob) -> str:
        match changed.outcome:
            case "requested":
                what = "runs; its worker was asked to stop"
            case "ended":
                what = f"had ended already: {changed.state}"
            case _:
                what = "cancelled"
        return f"{changed.job_id}  {what}"

    with opened(dsn) as session:
        code = each(
            job_ids, lambda job: session.ask(produce.cancel(job, reason)), told, as_json=as_json
        )
    ctx.exit(code)


@jobs.command(epilog=options.examples("trunkline jobs retry ID", "trunkline jobs retry ID --json"))
@options.with_options(options.ids, options.dsn, options.as_json)
@click.pass_context
def retry(ctx: click.Context, *, job_ids: tuple[UUID, ...], dsn: str | None, as_json: bool) -> None:
    """Run ended jobs again.

    Dead letters keep their ids and get all their attempts anew; finished ones become new jobs.
    """
    from trunkline.cli.actions import each  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above

    def told(made: Enqueued) -> str:
        if made.created:
            return f"{made.job_id}  {made.state}, a new job"
        # A dead letter keeps its id; another id belongs to a job that does the same already.
        return f"{made.job_id}  {made.state}" + ("" if made.job_id in job_ids else " already")

    with opened(dsn) as session:
        code = each(job_ids, lambda job: session.ask(produce.retry(job)), told, as_json=as_json)
    ctx.exit(code)


@jobs.command(epilog=options.examples("trunkline jobs explain ID"))
@options.with_options(options.job_id, options.dsn, options.as_json)
def explain(*, job_id: UUID, dsn: str | None, as_json: bool) -> None:
    """Say why a job is not running, and until when."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import read  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found = session.ask(read.explain(job_id))
        now = session.now()
    if as_json:
        print_json(found)
        return
    from trunkline.cli.explaining import sentence, worth_telling  # noqa: PLC0415 - see above

    for reason in worth_telling(found):
        click.echo(sentence(reason, now))


def _told_enqueued(made: Enqueued) -> str:
    if not made.created:
        return f"{made.job_id}  {made.state} already: the key belongs to this job"
    from trunkline.cli.output import moment  # noqa: PLC0415 - see above

    later = f", due {moment(made.run_at)}" if made.state == "scheduled" else ""
    return f"{made.job_id}  {made.state}{later}"


def _named(arguments: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for argument in arguments:
        name, mark, value = argument.partition("=")
        if not name or not mark:
            raise click.UsageError(f"{argument!r} is not NAME=VALUE.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
