"""``trunkline dead``: jobs that failed for good, kept until somebody decides."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.model import ChangedJob, DeadLetter, Enqueued

__all__ = ["dead"]

_log = logging.getLogger("trunkline.cli")

_task = click.option("--task", metavar="NAME", help="Only of this task.")
_queue = click.option("--queue", metavar="NAME", help="Only in this queue.")
_some = options.with_options(
    click.argument("job_ids", metavar="[ID]...", nargs=-1, type=click.UUID),
    click.option("--task", metavar="NAME", help="All of this task."),
    click.option("--queue", metavar="NAME", help="All in this queue."),
    click.option("--all", "everything", is_flag=True, help="All there are."),
    click.option("--dry-run", is_flag=True, help="Only say which ones it would be."),
    options.yes,
)


@click.group()
def dead() -> None:
    """Dead letters: jobs that used up their attempts or were refused for good."""


@dead.command(
    "list",
    epilog=options.examples(
        "trunkline dead list",
        "trunkline dead list --task send --unacknowledged",
        "trunkline dead list --json | jq -r '.[].last_error.message' | sort | uniq -c",
    ),
)
@click.option("--tenant", metavar="NAME", help="Only of this tenant.")
@click.option("--unacknowledged", is_flag=True, help="Only those nobody has marked as seen.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@options.with_options(_task, _queue, options.dsn, options.as_json)
def list_(
    *,
    task: str | None,
    queue: str | None,
    tenant: str | None,
    unacknowledged: bool,
    limit: int,
    dsn: str | None,
    as_json: bool,
) -> None:
    """List dead letters, newest first."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json, relative, shown_error  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column, show  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    acknowledged = False if unacknowledged else None
    call = views.dead_letters(
        task=task,
        queue=queue,
        tenant=tenant,
        acknowledged=acknowledged,
        limit=limit,
    )
    with opened(dsn) as session:
        found, now = session.ask(call), session.now()
        if (task or queue or tenant) and len(found) < limit:
            beyond = views.dead_letters_beyond(limit=limit, acknowledged=acknowledged)
            if session.ask(beyond):
                _log.warning(
                    "Only the newest dead letters were searched. Search more: --limit 100000"
                )
    if as_json:
        print_json(found)
        return
    show(
        [
            Column("JOB", lambda row: row.job_id),
            Column("TASK", lambda row: row.task, elastic=True),
            Column("QUEUE", lambda row: row.queue, rank=4, elastic=True),
            Column("DIED", lambda row: relative(row.died_at, now), rank=1),
            Column("TRY", lambda row: f"{row.failures}/{row.max_attempts}", right=True, rank=5),
            Column("SEEN", lambda row: "yes" if row.acknowledged_at else "", rank=3),
            Column(
                "WHY",
                lambda row: shown_error(row.last_error, row.reason),
                "red",
                rank=2,
                elastic=True,
            ),
        ],
        found,
        nothing="No dead letters",
    )


@dead.command(epilog=options.examples("trunkline dead show ID", "trunkline dead show ID --json"))
@options.with_options(options.job_id, options.dsn, options.as_json)
def show(*, job_id: UUID, dsn: str | None, as_json: bool) -> None:
    """Show a dead letter with the errors of its attempts."""
    from trunkline.cli import job_views  # noqa: PLC0415 - see above
    from trunkline.cli.connection import find_job, opened  # noqa: PLC0415 - see above
    from trunkline.errors import WrongState  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        job = find_job(session, job_id)
        if job.state != "dead":
            raise WrongState(
                "the job is not a dead letter",
                detail={"job": str(job_id), "state": str(job.state)},
                hint=f"See it with: trunkline jobs show {job_id}",
            )
        job_views.show_one(session, job_id, watch=False, as_json=as_json)


@dead.command(
    epilog=options.examples(
        "trunkline dead replay ID ID",
        "trunkline dead replay --task send --dry-run",
        "trunkline dead replay --queue mail --yes",
    )
)
@options.with_options(_some, options.dsn, options.as_json)
@click.pass_context
def replay(ctx: click.Context, /, *, dsn: str | None, as_json: bool, **which: Any) -> None:
    """Run dead letters again, with all their attempts anew."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above

    def told(made: Enqueued) -> str:
        return f"{made.job_id}  {made.state}"

    with opened(dsn) as session:
        code = _carry_out(
            session,
            "replay",
            lambda job: session.ask(produce.retry(job)),
            told,
            as_json=as_json,
            asks_for_ids=False,
            **which,
        )
    ctx.exit(code)


@dead.command(
    epilog=options.examples(
        "trunkline dead discard ID --reason 'no longer wanted'",
        "trunkline dead discard --task old_report --all-acknowledged",
        "trunkline dead discard --all --dry-run",
    )
)
@options.with_options(_some)
@click.option("--all-acknowledged", is_flag=True, help="All that were marked as seen.")
@click.option("--reason", metavar="TEXT", help="Kept in the events of the job.")
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def discard(
    ctx: click.Context,
    /,
    *,
    reason: str | None,
    dsn: str | None,
    as_json: bool,
    **which: Any,
) -> None:
    """Throw dead letters away. They cannot be brought back."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        code = _carry_out(
            session,
            "discard",
            lambda job: session.ask(produce.discard(job, reason)),
            _told_changed,
            as_json=as_json,
            asks_for_ids=True,
            **which,
        )
    ctx.exit(code)


@dead.command(epilog=options.examples("trunkline dead acknowledge ID ID"))
@options.with_options(options.ids, options.dsn, options.as_json)
@click.pass_context
def acknowledge(
    ctx: click.Context, *, job_ids: tuple[UUID, ...], dsn: str | None, as_json: bool
) -> None:
    """Mark dead letters as seen; they are removed a month later."""
    from trunkline.cli.actions import each  # noqa: PLC0415 - see above
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.db.calls import produce  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        code = each(
            job_ids,
            lambda job: session.ask(produce.acknowledge(job)),
            _told_changed,
            as_json=as_json,
        )
    ctx.exit(code)


def _told_changed(changed: ChangedJob) -> str:
    return f"{changed.job_id}  {changed.outcome}"


def _carry_out(
    session: Session,
    verb: str,
    action: Callable[[UUID], Any],
    told: Callable[[Any], str],
    *,
    job_ids: tuple[UUID, ...],
    task: str | None,
    queue: str | None,
    everything: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    asks_for_ids: bool,
    all_acknowledged: bool = False,
) -> int:
    from trunkline.cli.actions import confirm, each  # noqa: PLC0415 - see above
    from trunkline.cli.output import count, print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    filtered = bool(task or queue or everything or all_acknowledged)
    if bool(job_ids) == filtered:
        raise click.UsageError("Name dead letters by their ids, or pass --task, --queue or --all.")
    chosen: Sequence[UUID] = job_ids
    if filtered or dry_run:
        found = session.ask(
            views.dead_letters(
                jobs=job_ids or None,
                task=task,
                queue=queue,
                acknowledged=True if all_acknowledged else None,
            )
        )
        chosen = [row.job_id for row in found]
        if dry_run:
            print_json(found) if as_json else _list_dry(verb, found)
            return 0
        if not found:
            print_json([]) if as_json else click.echo("No dead letters fit", err=True)
            return 0
        confirm(f"{verb.capitalize()} {_summary(found)}?", yes=yes)
    elif asks_for_ids:
        confirm(f"{verb.capitalize()} {count(len(chosen), 'dead letter')}?", yes=yes)
    return each(chosen, action, told, as_json=as_json)


def _summary(found: Sequence[DeadLetter]) -> str:
    from trunkline.cli.output import clean, count  # noqa: PLC0415 - see above

    tasks = Counter(row.task for row in found).most_common()
    named = ", ".join(f"{clean(task)} {number:,}" for task, number in tasks[:5])
    return f"{count(len(found), 'dead letter')} ({named}{', …' if len(tasks) > 5 else ''})"


def _list_dry(verb: str, found: Sequence[DeadLetter]) -> None:
    from trunkline.cli.output import clean  # noqa: PLC0415 - see above

    for row in found:
        click.echo(f"{row.job_id}  {clean(row.task)}")
    click.echo(f"Would {verb} {_summary(found)}" if found else "No dead letters fit", err=True)
