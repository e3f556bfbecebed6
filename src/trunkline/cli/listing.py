"""Lists: what an operator asks, as a table, live with --watch, or as JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import click
from rich.console import Console, RenderableType

from trunkline.cli.connection import opened
from trunkline.cli.output import print_json
from trunkline.cli.tables import Column, console, live, put, table
from trunkline.operate import SyncOperator

__all__ = ["list_rows", "list_view"]

Row = TypeVar("Row")


def list_rows(
    dsn: str | None,
    ask: Callable[[SyncOperator], Sequence[Row]],
    columns: Callable[[datetime, Console], Sequence[Column[Row]]],
    *,
    empty: str,
    as_json: bool,
    watch: bool = False,
    document: Callable[[Sequence[Row]], Any] = lambda rows: rows,
) -> None:
    """List rows as a table; its columns may depend on the engine's time and on the terminal."""
    list_view(
        dsn,
        ask,
        lambda rows, now, out: table(columns(now, out), rows, out.width),
        empty=empty,
        as_json=as_json,
        watch=watch,
        document=document,
    )


def list_view(
    dsn: str | None,
    ask: Callable[[SyncOperator], Sequence[Row]],
    view: Callable[[Sequence[Row], datetime, Console], RenderableType],
    *,
    empty: str,
    as_json: bool,
    watch: bool = False,
    document: Callable[[Sequence[Row]], Any] = lambda rows: rows,
) -> None:
    """List rows in a view; `empty` is the sentence for no rows, `document` what JSON shows."""

    def answer(operator: SyncOperator) -> tuple[Sequence[Row], datetime]:
        return ask(operator), operator.now()

    with opened(dsn) as session:
        if watch:
            live(
                lambda: answer(session.watcher),
                lambda shown, out: view(shown[0], shown[1], out),
                as_json=as_json,
                document=lambda shown: document(shown[0]),
            )
            return
        rows, now = answer(session.operator)
    if as_json:
        print_json(document(rows))
    elif rows:
        out = console()
        put(out, view(rows, now, out))
    else:
        click.echo(empty, err=True)
