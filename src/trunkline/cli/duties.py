"""``trunkline duties``: the engine's periodic maintenance."""

from __future__ import annotations

from datetime import datetime

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import age, amount, clean, count, print_json, relative
from trunkline.cli.tables import Column
from trunkline.model import DutyRun, DutyStatus

__all__ = ["duties"]

_STYLES = {"ok": "green", "late": "red bold", "disabled": "yellow"}


@click.group()
def duties() -> None:
    """Periodic maintenance: list, run, enable, disable. Workers and `up` run due duties."""


@duties.command(
    "list",
    epilog=options.examples(
        "trunkline duties list", "trunkline duties list --watch", "trunkline duties list --json"
    ),
)
@options.with_options(options.watch, options.dsn, options.as_json)
def list_(*, watch: bool, dsn: str | None, as_json: bool) -> None:
    """List duties with their state, last runs and functions."""
    list_rows(
        dsn,
        lambda operator: operator.duties.list(),
        lambda now, _out: _columns(now),
        empty="No duties. Install the schema with: trunkline schema install",
        watch=watch,
        as_json=as_json,
    )


@duties.command(epilog=options.examples("trunkline duties run", "trunkline duties run reclaim"))
@click.argument("duty", metavar="[DUTY]", required=False)
@options.with_options(options.dsn, options.as_json)
@click.pass_context
def run(ctx: click.Context, *, duty: str | None, dsn: str | None, as_json: bool) -> None:
    """Run one duty now, due or not, or all that are due. The exit code is 1 if one failed."""
    with opened(dsn) as session:
        duties = session.operator.duties
        runs = [duties.run(duty)] if duty else duties.run_due()
    if as_json:
        print_json(runs)
    elif not runs:
        click.echo("No duty is due.")
    else:
        for outcome in runs:
            click.echo(_line(outcome))
    ctx.exit(1 if any(outcome.error for outcome in runs) else 0)


@duties.command(epilog=options.examples("trunkline duties enable promote"))
@click.argument("duty", metavar="DUTY")
@options.with_options(options.reason, options.dsn, options.as_json)
def enable(*, duty: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Let workers run a duty again."""
    change(
        lambda operator: operator.duties.enable(duty, reason=reason),
        lambda _: f"Duty {clean(duty)} enabled. Workers run it when it is due.",
        lambda _: {"duty": duty, "enabled": True},
        dsn=dsn,
        as_json=as_json,
    )


@duties.command(
    epilog=options.examples(
        "trunkline duties disable nightly_report --reason 'wrong numbers, see ticket 7'"
    )
)
@click.argument("duty", metavar="DUTY")
@options.with_options(options.reason, options.dsn, options.as_json)
def disable(*, duty: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Let workers skip a duty. `doctor` reports it until it is enabled again."""
    change(
        lambda operator: operator.duties.disable(duty, reason=reason),
        lambda _: f"Duty {clean(duty)} disabled. Workers skip it.",
        lambda _: {"duty": duty, "enabled": False},
        dsn=dsn,
        as_json=as_json,
    )


def _columns(now: datetime) -> list[Column[DutyStatus]]:
    def description(row: DutyStatus) -> str:
        if row.failures_in_a_row:
            return (row.last_error or {}).get("message") or row.description
        return row.description

    return [
        Column("DUTY", lambda row: row.duty),
        Column("", _state, lambda row: _STYLES[_state(row)]),
        Column("EVERY", lambda row: age(row.every), right=True, rank=4),
        Column("LAST", lambda row: relative(row.succeeded_at, now) or "never", rank=1),
        Column("RUNS", lambda row: amount(row.runs), right=True, rank=5),
        Column("FAILED", lambda row: row.failures or "", "red", right=True, rank=2),
        Column(
            "WHAT IT DOES",
            description,
            lambda row: "red" if row.failures_in_a_row else "",
            rank=3,
            elastic=True,
            least=36,
        ),
        Column("FUNCTION", lambda row: row.function, "dim", rank=6),
    ]


def _state(row: DutyStatus) -> str:
    if not row.enabled:
        return "disabled"
    return "late" if row.late else "ok"


def _line(outcome: DutyRun) -> str:
    name = f"Duty {clean(outcome.duty)}"
    if outcome.error:
        return f"{name} {click.style('failed', fg='red')}: {clean(outcome.error)}"
    if not outcome.ran:
        return f"{name} skipped. Another session is running it."
    return f"{name} finished: {count(outcome.rows or 0, 'row')}."
