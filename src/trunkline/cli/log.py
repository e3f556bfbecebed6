"""``trunkline log``: what operators changed, and why."""

from __future__ import annotations

from datetime import datetime, timedelta

import click

from trunkline.cli import options
from trunkline.cli.listing import list_rows
from trunkline.cli.log_views import columns
from trunkline.model import LogEntry
from trunkline.operate import SyncOperator

__all__ = ["log"]

_EMPTY = (
    "No changes. The log has what operators change, for example with: trunkline queues pause QUEUE"
)
_NO_MATCH = "No change matches. Show all of them with: trunkline log"


@click.command(
    epilog=options.examples(
        "trunkline log",
        "trunkline log --since 2h --watch",
        "trunkline log --object mail",
        "trunkline log --actor ann --action pause_queue",
        "trunkline log --kind limit --json | jq '.[] | {at, actor, before, after}'",
    )
)
@click.option("--actor", metavar="NAME", help="Changes by this person or program.")
@click.option("--action", metavar="NAME", help="For example pause_queue or set_limit.")
@click.option("--kind", metavar="NAME", help="For example queue, limit, job or jobs (bulk).")
@click.option(
    "--object",
    "object_name",
    metavar="NAME",
    help="A queue, limit, setting, job id or its start …",
)
@click.option(
    "--since", type=options.SINCE, metavar="TIME|LENGTH", help="From then on; 2h: two hours ago."
)
@click.option(
    "--until", type=options.SINCE, metavar="TIME|LENGTH", help="Before then; 1h: an hour ago."
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most N."
)
@options.with_options(options.watch, options.dsn, options.as_json)
def log(
    *,
    actor: str | None,
    action: str | None,
    kind: str | None,
    object_name: str | None,
    since: datetime | timedelta | None,
    until: datetime | timedelta | None,
    limit: int,
    watch: bool,
    dsn: str | None,
    as_json: bool,
) -> None:
    """Show what operators changed, newest first: who, what, why, and from what to what.

    A bulk change of jobs has one line per batch. Payloads are recorded as hashes, of which the
    table shows the first 8 digits.
    """

    def ask(operator: SyncOperator) -> list[LogEntry]:
        now = operator.now()
        return operator.log.list(
            actor=actor,
            action=action,
            kind=kind,
            object_name=object_name,
            since=None if since is None else options.since_time(since, now),
            until=None if until is None else options.since_time(until, now),
            limit=limit,
        )

    filters = (actor, action, kind, object_name, since, until)
    list_rows(
        dsn,
        ask,
        columns,
        empty=_EMPTY if all(value is None for value in filters) else _NO_MATCH,
        watch=watch,
        as_json=as_json,
    )
