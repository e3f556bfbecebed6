"""The figures as tables: on a terminal with their spread, in Markdown without."""

from collections.abc import Iterator, Sequence

from bench.contest.catalogue import GROUPS, Column, Group, shown
from bench.contest.record import Record

__all__ = ["markdown", "table"]

_NOTHING = "-"


def table(record: Record) -> str:
    """Return every figure as median (min to max), with a table for each group."""
    lines: list[str] = []
    for group in GROUPS:
        columns = [column for column in group.columns if _products(record, [column])]
        if not columns:
            continue
        unit = f"{group.unit}, " if group.unit else ""
        lines += ["", f"{group.title}: {unit}{group.better} is better; median (min to max)"]
        rows = [["", *(column.label for column in columns)]]
        rows += [
            [record.name(key), *(_spread(record, key, column) for column in columns)]
            for key in _products(record, columns)
        ]
        lines += _aligned(rows)
    lines += list(_remarks(record))
    return "\n".join(lines)


def markdown(record: Record, groups: Sequence[Group]) -> str:
    """Return the medians as one Markdown table, ours in bold."""
    columns = [column for group in groups for column in group.columns]
    head = [
        f"{group.title}, {column.label} ({group.unit})"
        for group in groups
        for column in group.columns
    ]
    lines = [f"| | {' | '.join(head)} |", f"|---|{'---:|' * len(head)}"]
    for number, key in enumerate(_products(record, columns)):
        cells = [_middle(record, key, column) for column in columns]
        if number == 0 and key == "trunkline":
            cells = [f"**{cell}**" for cell in cells]
        lines.append(f"| {record.name(key)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _products(record: Record, columns: Sequence[Column]) -> list[str]:
    """The products that have at least one of these figures, in the order of the run."""
    return [
        key
        for key in record.products
        if any(record.board.get(key, column.measure) for column in columns)
    ]


def _spread(record: Record, key: str, column: Column) -> str:
    result = record.board.get(key, column.measure)
    if result is None:
        return _NOTHING
    if len(result.values) == 1:
        return shown(result.median)
    spread = f"{shown(min(result.values))} to {shown(max(result.values))}"
    return f"{shown(result.median)} ({spread})"


def _middle(record: Record, key: str, column: Column) -> str:
    result = record.board.get(key, column.measure)
    return _NOTHING if result is None else shown(result.median)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, *cells in rows:
        padded = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
        yield "  ".join(["  " + name.ljust(widths[0]), *padded]).rstrip()


def _remarks(record: Record) -> Iterator[str]:
    wrong = [
        f"  {record.name(key)}: {text}" for key, texts in record.errors.items() for text in texts
    ]
    if wrong:
        yield from ["", "What went wrong:", *wrong]
    if record.skipped:
        yield from ["", "Left out:"]
        yield from (f"  {key}: {reason}" for key, reason in record.skipped.items())
