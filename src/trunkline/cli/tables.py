"""Tables and live views, laid out with rich; imported when a command runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import click
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from trunkline.cli.output import STATE_STYLES, clean, clean_lines, print_json

__all__ = ["Column", "console", "facts", "live", "put", "show", "state_text", "table"]

Row = TypeVar("Row")

_GAP = 2
_INTERVAL = 1.0


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column: what it shows of a row, and what becomes of it when the terminal is narrow."""

    title: str
    text: Callable[[Row], Any]
    style: Callable[[Row], str] | str = ""
    right: bool = False
    # Of two columns the one with the higher number is left out first; 0 always stays.
    rank: int = 0
    # May be cut short before others are left out, to so much at least.
    elastic: bool = False
    least: int = 8


def console() -> Console:
    """Standard output: as wide as the terminal, or as wide as it takes when piped."""
    made = Console(highlight=False, markup=False, soft_wrap=False)
    if not made.is_terminal:
        made = Console(highlight=False, markup=False, width=10_000, color_system=None)
    return made


def state_text(state: str) -> Text:
    """A state in its colour."""
    return Text(clean(state), style=STATE_STYLES.get(state, ""))


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Table:
    """Lay out what fits; columns that do not are left out, by their rank."""
    cells = [[_cell(column, row) for row in rows] for column in columns]
    natural = [
        max([cell_len(column.title), *(cell.cell_len for cell in found)])
        for column, found in zip(columns, cells, strict=True)
    ]
    # What is empty from top to bottom tells nothing.
    full = [
        i
        for i, column in enumerate(columns)
        if not column.rank or any(cell.plain for cell in cells[i])
    ]
    kept = _fitting(columns, natural, full, width)
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for i, room in _rooms(columns, natural, kept, width).items():
        made.add_column(
            columns[i].title,
            justify="right" if columns[i].right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=room,
        )
    for number in range(len(rows)):
        made.add_row(*(cells[i][number] for i in kept))
    return made


def show(columns: Sequence[Column[Row]], rows: Sequence[Row], *, nothing: str) -> None:
    """Print a table, or a sentence when there is nothing in it."""
    out = console()
    if rows:
        put(out, table(columns, rows, out.width))
    else:
        click.echo(nothing, err=True)


def put(out: Console, what: RenderableType) -> None:
    """Print; into a file without the spaces that fill a terminal's line."""
    if out.is_terminal:
        out.print(what)
        return
    with out.capture() as caught:
        out.print(what)
    for line in caught.get().splitlines():
        click.echo(line.rstrip())


def facts(pairs: Sequence[tuple[str, Any]]) -> Table:
    """Names and values below each other; those without a value are left out."""
    made = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
    made.add_column(no_wrap=True, style="bold")
    made.add_column(overflow="fold")
    for name, value in pairs:
        text = (
            value if isinstance(value, Text) else Text("" if value is None else clean_lines(value))
        )
        if text.plain:
            made.add_row(name, text)
    return made


def live(
    look: Callable[[], Any],
    render: Callable[[Any, Console], RenderableType],
    *,
    as_json: bool,
    ended: Callable[[Any], bool] = lambda _found: False,
    document: Callable[[Any], Any] = lambda found: found,
) -> None:
    """Look once a second and show what is there, until Ctrl-C or until it has ended.

    As JSON, or into a file, each look is one line or one table more.
    """
    out = console()

    def write(found: Any) -> None:
        if as_json:
            print_json(document(found))
        else:
            put(out, Group(render(found, out), Text("")))
            sys.stdout.flush()

    try:
        if as_json or not out.is_terminal:
            _repeat(look, write, ended)
        else:
            _refresh(look, render, out, ended)
    except KeyboardInterrupt:
        # The way to end it, so no failure.
        return


def _repeat(
    look: Callable[[], Any], write: Callable[[Any], None], ended: Callable[[Any], bool]
) -> None:
    while True:
        found = look()
        write(found)
        if ended(found):
            return
        time.sleep(_INTERVAL)


def _refresh(
    look: Callable[[], Any],
    render: Callable[[Any, Console], RenderableType],
    out: Console,
    ended: Callable[[Any], bool],
) -> None:
    found = look()
    with Live(
        render(found, out), console=out, auto_refresh=False, vertical_overflow="crop"
    ) as screen:
        while not ended(found):
            time.sleep(_INTERVAL)
            found = look()
            screen.update(render(found, out), refresh=True)


def _cell(column: Column[Row], row: Row) -> Text:
    found = column.text(row)
    if isinstance(found, Text):
        return found
    style = column.style if isinstance(column.style, str) else column.style(row)
    return Text(clean("" if found is None else found), style=style)


def _fitting(
    columns: Sequence[Column[Any]], natural: Sequence[int], full: Sequence[int], width: int
) -> list[int]:
    kept = list(full)

    def least() -> int:
        return sum(
            (min(natural[i], columns[i].least) if columns[i].elastic else natural[i]) + _GAP
            for i in kept
        )

    while least() - _GAP > width:
        last = max(kept, key=lambda i: (columns[i].rank, i))
        if columns[last].rank == 0:
            break
        kept.remove(last)
    return kept


def _rooms(
    columns: Sequence[Column[Any]], natural: Sequence[int], kept: Sequence[int], width: int
) -> dict[int, int]:
    """How wide each column is; those that may be cut share what the others leave."""
    rooms = {i: natural[i] for i in kept}
    elastic = sorted((i for i in kept if columns[i].elastic), key=lambda i: natural[i])
    left = width - _GAP * (len(kept) - 1) - sum(natural[i] for i in kept if i not in elastic)
    for place, i in enumerate(elastic):
        others = sum(min(natural[j], columns[j].least) for j in elastic[place + 1 :])
        share = min(left // (len(elastic) - place), left - others)
        rooms[i] = max(min(natural[i], share), min(natural[i], columns[i].least))
        left -= rooms[i]
    return rooms
