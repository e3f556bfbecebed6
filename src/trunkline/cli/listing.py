"""Lists that can be watched: what a call finds, once, again and again, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeVar

import click
from rich.console import Console, RenderableType

from trunkline.cli.connection import opened
from trunkline.cli.output import print_json
from trunkline.cli.tables import Column, console, live, put, table
from trunkline.db.call import Call

__all__ = ["list_rows", "list_view"]

Row = TypeVar("Row")


def list_rows(
    dsn: str | None,
    call: Call[list[Row]],
    columns: Callable[[datetime, Console], Sequence[Column[Row]]],
    *,
    nothing: str,
    watch: bool,
    as_json: bool,
) -> None:
    """List what a call finds as a table; its columns may depend on the engine's time."""
    list_view(
        dsn,
        call,
        lambda rows, now, out: table(columns(now, out), rows, out.width),
        nothing=nothing,
        watch=watch,
        as_json=as_json,
    )


def list_view(
    dsn: str | None,
    call: Call[list[Row]],
    view: Callable[[Sequence[Row], datetime, Console], RenderableType],
    *,
    nothing: str,
    watch: bool,
    as_json: bool,
) -> None:
    """List what a call finds in a view of its own."""
    with opened(dsn) as session:

        def look() -> tuple[list[Row], datetime]:
            return session.ask(call), session.now()

        if watch:
            live(
                lambda: session.persist(look),
                lambda seen, out: view(seen[0], seen[1], out),
                as_json=as_json,
                document=lambda seen: seen[0],
            )
            return
        found, now = look()
    if as_json:
        print_json(found)
    elif found:
        out = console()
        put(out, view(found, now, out))
    else:
        click.echo(nothing, err=True)
