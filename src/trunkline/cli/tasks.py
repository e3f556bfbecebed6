"""``trunkline tasks``: what the engine knows of each task."""

from __future__ import annotations

import click

from trunkline.cli import options

__all__ = ["tasks"]


@click.group()
def tasks() -> None:
    """Registered tasks and their policies. Workers and clients register them by themselves."""


@tasks.command(
    "list", epilog=options.examples("trunkline tasks list", "trunkline tasks list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List tasks with the policy in force."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import age, print_json  # noqa: PLC0415 - see main.py
    from trunkline.cli.tables import Column, show  # noqa: PLC0415 - see main.py
    from trunkline.db.calls import views  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        found = session.ask(views.tasks())
    if as_json:
        print_json(found)
        return
    show(
        [
            Column("TASK", lambda row: row.task, elastic=True),
            Column("QUEUE", lambda row: row.queue, elastic=True),
            Column("LEASE", lambda row: age(row.lease), right=True, rank=1),
            Column("LIMIT", lambda row: age(row.hard_limit), right=True, rank=3),
            Column("ATTEMPTS", lambda row: row.max_attempts, right=True, rank=2),
            Column("PRIO", lambda row: row.priority or "", right=True, rank=4),
            Column("PROFILE", lambda row: row.profile, rank=6),
            Column("ALIAS OF", lambda row: row.alias_of or "", rank=4),
            Column("AUDIT", lambda row: "yes" if row.audit else "", rank=5),
        ],
        found,
        nothing="No tasks yet: a worker registers those of its application when it starts",
    )


@tasks.command(epilog=options.examples("trunkline tasks show send"))
@click.argument("task", metavar="TASK")
@options.with_options(options.dsn, options.as_json)
def show(*, task: str, dsn: str | None, as_json: bool) -> None:
    """Show the policy of one task."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import age, clean, moment, print_json  # noqa: PLC0415 - see main.py
    from trunkline.cli.tables import console, facts, put  # noqa: PLC0415 - see main.py
    from trunkline.db.calls import views  # noqa: PLC0415 - see main.py
    from trunkline.errors import UnknownTask  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        known = {row.task: row for row in session.ask(views.tasks())}
        now = session.now()
        row = known.get(task)
        if row is None:
            raise UnknownTask(
                "unknown task",
                detail={"task": task, "known": sorted(known)},
                hint="A worker registers the tasks of its application when it starts; see those "
                "there are with: trunkline tasks list",
            )
    if as_json:
        print_json(row)
        return
    put(
        console(),
        facts(
            [
                ("task", clean(row.task)),
                *([("alias of", clean(row.alias_of))] if row.alias_of else []),
                ("queue", clean(row.queue)),
                ("profile", clean(row.profile)),
                ("lease", age(row.lease)),
                ("hard limit", age(row.hard_limit)),
                ("attempts", row.max_attempts),
                ("priority", row.priority),
                (
                    "back-off",
                    (
                        f"{age(row.backoff_base)} x {row.backoff_factor:g} for each failure, "
                        f"at most {age(row.backoff_cap)}, ± {row.backoff_jitter:.0%}"
                    ),
                ),
                ("lost jobs", "wait for the back-off" if row.lost_backoff else "run again soon"),
                (
                    "worker gone",
                    "jobs are taken back at once"
                    if row.reclaim_on_worker_death
                    else "jobs wait for the end of their lease",
                ),
                ("crash limit", row.crash_limit),
                ("unique until", row.unique_until),
                ("put off often", "dead" if row.dead_when_deferred else "reported"),
                ("audit", "every step" if row.audit else "only what is out of the ordinary"),
                ("registered", moment(row.registered_at, now)),
                ("changed", moment(row.updated_at, now)),
            ]
        ),
    )
