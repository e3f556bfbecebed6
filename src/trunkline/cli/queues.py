"""``trunkline queues``: what waits where, and who may take it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.tables import Column

__all__ = ["queues"]


@click.group()
def queues() -> None:
    """Queues: list, pause, resume, limit, age. A queue comes into being with its first job."""


@queues.command(
    "list",
    epilog=options.examples(
        "trunkline queues list",
        "trunkline queues list --watch",
        "trunkline queues list --json | jq '.[] | select(.paused)'",
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List queues with what waits and runs in each.

    Jobs are counted up to 10,000; a plus means that many or more.
    """
    from trunkline.cli.listing import list_rows  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    list_rows(
        dsn,
        views.queues(),
        lambda _now, _out: _columns(),
        nothing="No queues yet: a queue comes into being with its first job",
        watch=watch,
        as_json=as_json,
    )


@queues.command(
    epilog=options.examples(
        "trunkline queues pause mail --reason 'provider is down'",
        "trunkline queues pause mail --refuse-new",
    )
)
@click.argument("queue", metavar="QUEUE")
@click.option("--reason", metavar="TEXT", help="Shown to whoever asks why.")
@click.option("--refuse-new", is_flag=True, help="Refuse new jobs as well.")
@options.with_options(options.dsn, options.as_json)
def pause(
    *, queue: str, reason: str | None, refuse_new: bool, dsn: str | None, as_json: bool
) -> None:
    """Stop claims from a queue; what runs goes on."""
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    what = "no job is claimed from it" + (", and new ones are refused" if refuse_new else "")
    _change(
        admin.pause_queue(queue, reason, refuse_enqueue=refuse_new),
        lambda _answer: f"{queue} is paused: {what}",
        {"queue": queue, "paused": True, "refuse_enqueue": refuse_new, "reason": reason},
        dsn=dsn,
        as_json=as_json,
    )


@queues.command(epilog=options.examples("trunkline queues resume mail"))
@click.argument("queue", metavar="QUEUE")
@options.with_options(options.dsn, options.as_json)
def resume(*, queue: str, dsn: str | None, as_json: bool) -> None:
    """Let claims and new jobs in again."""
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    _change(
        admin.resume_queue(queue),
        lambda was: f"{queue} goes on" if was else f"{queue} was not paused",
        {"queue": queue, "paused": False},
        dsn=dsn,
        as_json=as_json,
        answer="was_paused",
    )


@queues.command(
    epilog=options.examples("trunkline queues limit mail 10000", "trunkline queues limit mail none")
)
@click.argument("queue", metavar="QUEUE")
@click.argument("jobs", metavar="N|none")
@options.with_options(options.dsn, options.as_json)
def limit(*, queue: str, jobs: str, dsn: str | None, as_json: bool) -> None:
    """Refuse new jobs while so many are ready; `none` lifts the limit."""
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    if jobs != "none" and not (jobs.isdecimal() and 0 < int(jobs) < 2**31):
        raise click.BadParameter(f"{jobs!r} is neither a number from 1 on nor none.")
    most = None if jobs == "none" else int(jobs)
    _change(
        admin.limit_queue(queue, most),
        lambda _answer: (
            f"{queue} has no limit" if most is None else f"{queue} holds up to {most:,}"
        ),
        {"queue": queue, "max_depth": most},
        dsn=dsn,
        as_json=as_json,
    )


@queues.command(
    epilog=options.examples("trunkline queues age mail", "trunkline queues age mail --off")
)
@click.argument("queue", metavar="QUEUE")
@click.option("--off", is_flag=True, help="Highest priorities first again, always.")
@options.with_options(options.dsn, options.as_json)
def age(*, queue: str, off: bool, dsn: str | None, as_json: bool) -> None:
    """Let low priorities have their turn, so that none of them starves.

    One of sixteen claims then begins with the lowest; those from 0 on and those below apart.
    """
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    told = "serves the highest priorities first" if off else "ages: low priorities get their turn"
    _change(
        admin.age_queue(queue, ageing=not off),
        lambda _answer: f"{queue} {told}",
        {"queue": queue, "ageing": not off},
        dsn=dsn,
        as_json=as_json,
    )


def _change(
    call: Any, told: Any, facts: dict[str, Any], *, dsn: str | None, as_json: bool, answer: str = ""
) -> None:
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found = session.ask(call)
    if as_json:
        print_json(facts | ({answer: found} if answer else {}))
    else:
        click.echo(told(found))


def _columns() -> list[Column[Any]]:
    from trunkline.cli.output import age, capped  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column  # noqa: PLC0415 - see above

    def number(title: str, style: str, rank: int) -> Column[Any]:
        name = title.lower()
        return Column(
            title,
            lambda row: capped(getattr(row, name), row.counted_up_to),
            lambda row: style if getattr(row, name) else "dim",
            right=True,
            rank=rank,
        )

    def held(row: Any) -> str:
        if row.paused:
            return f"paused: {row.paused_reason}" if row.paused_reason else "paused"
        told = [f"limit {row.max_depth:,}"] if row.max_depth else []
        return ", ".join([*told, *(["ages"] if row.ageing else [])])

    return [
        Column("QUEUE", lambda row: row.queue, elastic=True),
        number("READY", "cyan", 0),
        number("RUNNING", "yellow", 0),
        number("SCHEDULED", "blue", 2),
        number("BLOCKED", "magenta", 5),
        number("DEAD", "red bold", 1),
        Column("OLDEST", lambda row: age(row.oldest_ready_age), right=True, rank=4),
        Column("", held, "yellow", rank=3, elastic=True),
    ]
