"""``trunkline settings``: numbers and switches of the engine, changed for everybody at once."""

from __future__ import annotations

import click

from trunkline.cli import options

__all__ = ["settings"]


@click.group()
def settings() -> None:
    """Numbers and switches of the engine; a change holds for everybody at once."""


@settings.command(
    "list", epilog=options.examples("trunkline settings list", "trunkline settings list --json")
)
@options.with_options(options.dsn, options.as_json)
def list_(*, dsn: str | None, as_json: bool) -> None:
    """List settings with the value in force."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.cli.tables import Column, show  # noqa: PLC0415 - see main.py
    from trunkline.db.calls import views  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        found = session.ask(views.settings())
    if as_json:
        print_json(found)
        return
    show(
        [
            Column("SETTING", lambda row: row.name),
            Column("VALUE", lambda row: row.value, lambda row: _style(row.origin), elastic=True),
            Column("DEFAULT", lambda row: row.default_value, "dim", rank=2),
            Column("WHAT IT DOES", lambda row: row.description, rank=1, elastic=True),
        ],
        found,
        nothing="No settings",
    )


@settings.command(epilog=options.examples("trunkline settings get lease"))
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def get(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Print the value of one setting; with --json all about it."""
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.calls import views  # noqa: PLC0415 - see main.py
    from trunkline.errors import UnknownSetting  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        found = {row.name: row for row in session.ask(views.settings())}
    if name not in found:
        raise UnknownSetting(
            "unknown setting",
            detail={"setting": name, "known": sorted(found)},
            hint="See those there are with: trunkline settings list",
        )
    if as_json:
        print_json(found[name])
    else:
        click.echo(found[name].value)


@settings.command(
    "set",
    epilog=options.examples(
        "trunkline settings set lease 10m", "trunkline settings set claims_enabled false"
    ),
)
@click.argument("name", metavar="NAME")
@click.argument("value", metavar="VALUE")
@options.with_options(options.dsn, options.as_json)
def set_(*, name: str, value: str, dsn: str | None, as_json: bool) -> None:
    """Change a setting."""
    _change(name, value, dsn=dsn, as_json=as_json)


@settings.command(epilog=options.examples("trunkline settings reset lease"))
@click.argument("name", metavar="NAME")
@options.with_options(options.dsn, options.as_json)
def reset(*, name: str, dsn: str | None, as_json: bool) -> None:
    """Give a setting its default back."""
    _change(name, None, dsn=dsn, as_json=as_json)


def _change(name: str, value: str | None, *, dsn: str | None, as_json: bool) -> None:
    from trunkline.cli.connection import opened  # noqa: PLC0415 - see main.py
    from trunkline.cli.output import print_json  # noqa: PLC0415 - see main.py
    from trunkline.db.calls import admin  # noqa: PLC0415 - see main.py

    with opened(dsn) as session:
        now = session.ask(admin.set_setting(name, value))
    if as_json:
        print_json({"name": name, "value": now})
    else:
        click.echo(f"{name} = {now}" + (" (the default)" if value is None else ""))


def _style(origin: str) -> str:
    return "dim" if origin == "default" else "yellow"
