"""``trunkline settings``: numbers and switches of the engine, for all sessions."""

from __future__ import annotations

import click

from trunkline.cli import options
from trunkline.cli.actions import change
from trunkline.cli.connection import opened
from trunkline.cli.listing import list_rows
from trunkline.cli.output import clean, print_json
from trunkline.cli.tables import Column
from trunkline.model import SettingStatus

__all__ = ["settings"]


@click.group()
def settings() -> None:
    """Numbers and switches of the engine. A change applies to all clients and workers."""


@settings.command(
    "list", epilog=options.examples("trunkline settings list", "trunkline settings list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List settings with their values."""
    list_rows(
        dsn,
        lambda operator: operator.settings.list(),
        lambda _now, _out: _columns(),
        empty="No settings. Install the schema with: trunkline schema install",
        as_json=as_json,
    )


@settings.command(epilog=options.examples("trunkline settings get lease"))
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def get(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Print the value of a setting; with --json everything about it."""
    with opened(dsn) as session:
        setting = session.operator.settings.get(name)
    if as_json:
        print_json(setting)
    else:
        click.echo(setting.value)


@settings.command(
    "set",
    epilog=options.examples(
        "trunkline settings set lease 10m",
        "trunkline settings set claims_enabled false --reason 'migration of the provider'",
    ),
)
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="VALUE")
@options.with_options(options.reason, options.dsn, options.as_json)
def set_(*, name: str, value: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Change a setting."""
    change(
        lambda operator: operator.settings.set(name, value, reason=reason),
        lambda new: f"Setting {clean(name)} changed to {clean(new)}.",
        lambda new: {"name": name, "value": new},
        dsn=dsn,
        as_json=as_json,
    )


@settings.command(epilog=options.examples("trunkline settings reset lease"))
@click.argument("name", metavar="NAME")
@options.with_options(options.reason, options.dsn, options.as_json)
def reset(*, name: str, reason: str | None, dsn: str | None, as_json: bool) -> None:
    """Restore the default of a setting."""
    change(
        lambda operator: operator.settings.reset(name, reason=reason),
        lambda default: f"Setting {clean(name)} reset to its default, {clean(default)}.",
        lambda default: {"name": name, "value": default},
        dsn=dsn,
        as_json=as_json,
    )


def _columns() -> list[Column[SettingStatus]]:
    def default(row: SettingStatus) -> str:
        return "" if row.origin == "default" else row.default_value

    return [
        Column("SETTING", lambda row: row.name),
        Column(
            "VALUE",
            lambda row: row.value,
            lambda row: "dim" if row.origin == "default" else "yellow",
            elastic=True,
        ),
        Column("DEFAULT", default, "dim", rank=2),
        Column("WHAT IT DOES", lambda row: row.description, rank=1, elastic=True),
    ]
