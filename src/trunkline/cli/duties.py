"""``trunkline duties``: the engine's periodic maintenance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from trunkline.cli import options

# Imports of the driver and of rich wait until a command runs, so that help is quick.
if TYPE_CHECKING:
    from trunkline.model import DutyRun, DutyStatus

__all__ = ["duties"]


@click.group()
def duties() -> None:
    """Periodic maintenance: list, run, enable, disable. Workers and `up` run it in passing."""


@duties.command(
    "list", epilog=options.examples("trunkline duties list", "trunkline duties list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List duties with their state, last runs and functions."""
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
            Column("", _state, lambda row: _STYLES[_state(row)]),
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
            Column("FUNCTION", lambda row: row.function, "dim", rank=6),
        ],
        found,
        nothing="No duties",
    )


@duties.command(epilog=options.examples("trunkline duties run", "trunkline duties run reclaim"))
@click.argument("duty", metavar="[DUTY]", required=False)
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def run(ctx: click.Context, *, duty: str | None, dsn: str | None, as_json: bool) -> None:
    """Run one duty now, due or not, or all that are due. The exit code is 1 if one failed."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        runs = [session.ask(admin.run_duty(duty))] if duty else session.ask(admin.run_duties())
    if as_json:
        print_json(runs)
    elif not runs:
        click.echo("No duty is due")
    else:
        for outcome in runs:
            click.echo(_line(outcome))
    ctx.exit(1 if any(outcome.error for outcome in runs) else 0)


@duties.command(epilog=options.examples("trunkline duties enable promote"))
@click.argument("duty", metavar="DUTY")
@options.with_options(options.dsn, options.as_json)
def enable(*, duty: str, dsn: str | None, as_json: bool) -> None:
    """Let workers run a duty again."""
    _enable(duty, enabled=True, dsn=dsn, as_json=as_json)


@duties.command(epilog=options.examples("trunkline duties disable nightly_report"))
@click.argument("duty", metavar="DUTY")
@options.with_options(options.dsn, options.as_json)
def disable(*, duty: str, dsn: str | None, as_json: bool) -> None:
    """Let workers skip a duty. `doctor` reports it until it is enabled again."""
    _enable(duty, enabled=False, dsn=dsn, as_json=as_json)


def _enable(duty: str, *, enabled: bool, dsn: str | None, as_json: bool) -> None:
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see above
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see above
    from trunkline.db.calls import admin  # noqa: PLC0415 - see above

    with opened(dsn) as session:
        session.ask(admin.enable_duty(duty, enabled=enabled))
    if as_json:
        print_json({"duty": duty, "enabled": enabled})
    elif enabled:
        click.echo(f"Duty {duty} enabled. Workers run it when it is due.")
    else:
        click.echo(f"Duty {duty} disabled. Workers skip it.")


_STYLES = {"ok": "green", "late": "red bold", "disabled": "yellow"}


def _state(row: DutyStatus) -> str:
    if not row.enabled:
        return "disabled"
    return "late" if row.late else "ok"


def _line(outcome: DutyRun) -> str:
    from trunkline.cli.output import clean  # noqa: PLC0415 - see above

    if outcome.error:
        return f"{outcome.duty}  {click.style('failed', fg='red')}: {clean(outcome.error)}"
    if not outcome.ran:
        return f"{outcome.duty}  another session is running it"
    return f"{outcome.duty}  {outcome.rows or 0} rows"
