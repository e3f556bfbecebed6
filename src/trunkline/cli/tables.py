"""Tables and live views, laid out with rich."""

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
    """One column: what it shows of a row, and what happens to it in a narrow terminal."""

    title: str
    text: Callable[[Row], Any]
    style: Callable[[Row], str] | str = ""
    right: bool = False
    # The column with the highest rank is left out first; 0 always stays.
    rank: int = 0
    # May be cut to `least` characters. Columns of a higher rank are left out before it has less
    # than `room`.
    elastic: bool = False
    least: int = 8
    room: int = 8
    # Holds ids: if not everything fits, they are cut to this length, or to more where the shown ids
    # would not differ.
    short: int | None = None


def console() -> Console:
    """Return standard output: as wide as the terminal, or without a bound if it is piped."""
    out = Console(highlight=False, markup=False, soft_wrap=False)
    if not out.is_terminal:
        out = Console(highlight=False, markup=False, width=10_000, color_system=None)
    return out


def state_text(state: str) -> Text:
    """Return a state in its colour."""
    return Text(clean(state), style=STATE_STYLES.get(state, ""))


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int) -> Table:
    """Lay out the columns that fit; the others are left out by their rank."""
    cells = [[_cell(column, row) for row in rows] for column in columns]
    # A column without any text is left out.
    full = [
        i
        for i, column in enumerate(columns)
        if not column.rank or any(cell.plain for cell in cells[i])
    ]
    natural = _widths(columns, cells)
    kept = full
    if sum(natural[i] + _GAP for i in full) - _GAP > width:
        for i, column in enumerate(columns):
            if column.short is not None:
                cells[i] = _shortened(cells[i], column.short)
        natural = _widths(columns, cells)
        kept = _fitting(columns, natural, full, width)
    grid = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for i, room in _rooms(columns, natural, kept, width).items():
        grid.add_column(
            columns[i].title,
            justify="right" if columns[i].right else "left",
            no_wrap=True,
            overflow="ellipsis",
            width=room,
        )
    for number in range(len(rows)):
        grid.add_row(*(cells[i][number] for i in kept))
    return grid


def show(columns: Sequence[Column[Row]], rows: Sequence[Row], *, nothing: str) -> None:
    """Print a table, or a sentence if it has no rows."""
    out = console()
    if rows:
        put(out, table(columns, rows, out.width))
    else:
        click.echo(nothing, err=True)


def put(out: Console, what: RenderableType) -> None:
    """Print it; into a file, without the spaces that fill a line of a terminal."""
    if out.is_terminal:
        out.print(what)
        return
    with out.capture() as capture:
        out.print(what)
    for line in capture.get().splitlines():
        click.echo(line.rstrip())


def facts(pairs: Sequence[tuple[str, Any]]) -> Table:
    """Return names with their values, one per line; names without a value are left out."""
    grid = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        text = (
            value if isinstance(value, Text) else Text("" if value is None else clean_lines(value))
        )
        if text.plain:
            grid.add_row(name, text)
    return grid


def live(
    ask: Callable[[], Any],
    render: Callable[[Any, Console], RenderableType],
    *,
    as_json: bool,
    ended: Callable[[Any], bool] = lambda _answer: False,
    document: Callable[[Any], Any] = lambda answer: answer,
) -> None:
    """Ask once a second and show the answer, until Ctrl-C or until `ended` is true of it.

    As JSON, or into a file, each answer is printed after the last one.
    """
    out = console()

    def write(answer: Any) -> None:
        if as_json:
            print_json(document(answer))
        else:
            put(out, Group(render(answer, out), Text("")))
            sys.stdout.flush()

    try:
        if as_json or not out.is_terminal:
            _repeat(ask, write, ended)
        else:
            _refresh(ask, render, out, ended)
    except KeyboardInterrupt:
        # This is how a user ends it.
        return


def _repeat(
    ask: Callable[[], Any], write: Callable[[Any], None], ended: Callable[[Any], bool]
) -> None:
    while True:
        answer = ask()
        write(answer)
        if ended(answer):
            return
        time.sleep(_INTERVAL)


def _refresh(
    ask: Callable[[], Any],
    render: Callable[[Any, Console], RenderableType],
    out: Console,
    ended: Callable[[Any], bool],
) -> None:
    answer = ask()
    with Live(
        render(answer, out), console=out, auto_refresh=False, vertical_overflow="crop"
    ) as screen:
        while not ended(answer):
            time.sleep(_INTERVAL)
            answer = ask()
            screen.update(render(answer, out), refresh=True)


def _cell(column: Column[Row], row: Row) -> Text:
    value = column.text(row)
    if isinstance(value, Text):
        return value
    style = column.style if isinstance(column.style, str) else column.style(row)
    return Text(clean("" if value is None else value), style=style)


def _widths(columns: Sequence[Column[Any]], cells: Sequence[Sequence[Text]]) -> list[int]:
    return [
        max([cell_len(column.title), *(cell.cell_len for cell in texts)])
        for column, texts in zip(columns, cells, strict=True)
    ]


def _shortened(cells: Sequence[Text], least: int) -> list[Text]:
    """Cut ids to the same length at which they still differ."""
    ids = {cell.plain for cell in cells}
    length = least
    while len({text[:length] for text in ids}) < len(ids):
        length += 1
    return [cell[:length] for cell in cells]


def _fitting(
    columns: Sequence[Column[Any]], natural: Sequence[int], full: Sequence[int], width: int
) -> list[int]:
    kept = list(full)
    while True:
        last = max(kept, key=lambda i: (columns[i].rank, i))

        def needed(i: int, rank: int = columns[last].rank) -> int:
            column = columns[i]
            if not column.elastic:
                return natural[i]
            room = max(column.room, column.least) if column.rank < rank else column.least
            return min(natural[i], room)

        if columns[last].rank == 0 or sum(needed(i) + _GAP for i in kept) - _GAP <= width:
            return kept
        kept.remove(last)


def _rooms(
    columns: Sequence[Column[Any]], natural: Sequence[int], kept: Sequence[int], width: int
) -> dict[int, int]:
    """Return the width of each column; elastic ones share what the others leave."""
    rooms = {i: natural[i] for i in kept}
    elastic = sorted((i for i in kept if columns[i].elastic), key=lambda i: natural[i])
    left = width - _GAP * (len(kept) - 1) - sum(natural[i] for i in kept if i not in elastic)
    for place, i in enumerate(elastic):
        others = sum(
            min(natural[j], max(columns[j].room, columns[j].least)) for j in elastic[place + 1 :]
        )
        share = min(left // (len(elastic) - place), left - others)
        rooms[i] = max(min(natural[i], share), min(natural[i], columns[i].least))
        left -= rooms[i]
    return rooms
