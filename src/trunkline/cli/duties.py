"""``trunkline duties``: the engine's periodic maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.cli.connection import Session
    from trunkline.db.calls.admin import DutyRun

__all__ = ["duties"]

_NAMES = (
    *("maintain_partitions", "promote", "reclaim", "run_schedules"),
    *("sweep_buckets", "sweep_idempotency"),
)


@click.group()
def duties() -> None:
    """Periodic maintenance. Every worker does it in passing; `up` too."""


@duties.command(
    "list", epilog=options.examples("trunkline duties list", "trunkline duties list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List duties with their last runs and whether they are late."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import age, amount, print_json, relative  # noqa: PLC0415 - see above
    from trunkline.cli.tables import Column, show  # noqa: PLC0415 - see above
    from trunkline.db.calls import views  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        found, now = session.ask(views.duties()), session.now()
    if as_json:
        print_json(found)
        return
    show(
        [
            Column("DUTY", lambda row: row.duty),
            Column(
                "",
                lambda row: "late" if row.late else "ok",
                lambda row: "red bold" if row.late else "green",
            ),
            Column("EVERY", lambda row: age(row.every), right=True, rank=4),
            Column("LAST", lambda row: relative(row.succeeded_at, now) or "never", rank=1),
            Column("RUNS", lambda row: amount(row.runs), right=True, rank=5),
            Column("FAILED", lambda row: row.failures or "", "red", right=True, rank=2),
            Column(
                "WHAT IT DOES",
                lambda row: (
                    (row.last_error or {}).get("message") or row.description
                    if row.failures_in_a_row
                    else row.description
                ),
                lambda row: "red" if row.failures_in_a_row else "",
                rank=3,
                elastic=True,
            ),
        ],
        found,
        nothing="No duties",
    )


@duties.command(epilog=options.examples("trunkline duties run", "trunkline duties run reclaim"))
@click.argument("duty", metavar="[DUTY]", required=False, type=click.Choice(_NAMES))
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def run(ctx: click.Context, *, duty: str | None, dsn: str | None, as_json: bool) -> None:
    """Run one duty now, or all that are due. The exit code is 1 if one failed."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        ran = [_run_one(session, duty)] if duty else session.ask(admin.run_duties())
    if as_json:
        print_json(ran)
    elif not ran:
        click.echo("No duty is due")
    else:
        for one in ran:
            click.echo(_told(one))
    ctx.exit(1 if any(one.error for one in ran) else 0)


def _run_one(session: Session, duty: str) -> DutyRun:
    from trunkline.db.calls import admin, views  # noqa: PLC0415 - see above

    def look() -> Any:
        return next(row for row in session.ask(views.duties()) if row.duty == duty)

    before = look()
    rows = session.ask(admin.run_duty(duty))
    after = look()
    failed = after.failures > before.failures
    # A duty that fails says so in its own row, and the call succeeds.
    error = str((after.last_error or {}).get("message")) if failed else None
    return admin.DutyRun(duty, after.runs > before.runs, rows, error)


def _told(one: DutyRun) -> str:
    if one.error:
        return f"{one.duty}  {click.style('failed', fg='red')}: {one.error}"
    return f"{one.duty}  {one.rows or 0} rows" if one.ran else f"{one.duty}  somebody else is at it"
