"""The figures as a chart, with a panel for each of the most important measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bench.charts.bars import Bar, Panel, Row, bars
from bench.contest.record import Record

__all__ = ["chart"]

_OURS = "trunkline"
# If some products are slower by orders of magnitude, bars end at this multiple of the best.
_TIMES_BEST = 8.0


@dataclass(frozen=True, slots=True)
class _Subject:
    title: str
    unit: str
    better: Literal["more", "less"]
    # Names in the record, with a label if they share a row.
    measures: tuple[tuple[str, str], ...]


_SUBJECTS = (
    _Subject("Drain, one worker process", "jobs/s", "more", (("drain_1", ""),)),
    _Subject("Drain, two worker processes", "jobs/s", "more", (("drain_2", ""),)),
    _Subject("Drain, jobs that take 1 ms", "jobs/s", "more", (("drain_1ms", ""),)),
    _Subject("Bulk enqueue", "jobs/s", "more", (("bulk", ""),)),
    _Subject("Enqueue one by one", "jobs/s", "more", (("enqueue_1", ""),)),
    _Subject("Enqueue, ten at once", "jobs/s", "more", (("enqueue_10", ""),)),
    _Subject(
        "Pick-up by an idle worker",
        "ms from call to handler",
        "less",
        (("latency_call_p50", "p50"), ("latency_call_p99", "p99")),
    ),
    _Subject("Processor time, client and server", "seconds per 1,000 jobs", "less", (("cpu", ""),)),
)


def chart(record: Record) -> str:
    """Draw the chart, the best at the top of each panel."""
    panels = [panel for subject in _SUBJECTS if (panel := _panel(record, subject)) is not None]
    server = record.machine.get("server_version", "")
    cores = record.machine.get("cores", "?")
    where = f"{cores} cores, PostgreSQL {server}, the same durability for all"
    note = (
        f"{record.date}, {record.command}: {where}.\n"
        "Medians; whiskers from the lowest to the highest repetition. "
        "An arrow marks a bar that is longer than its axis."
    )
    return bars("Queues side by side in one run", panels, note=note)


def _panel(record: Record, subject: _Subject) -> Panel | None:
    rows = []
    for key in record.products:
        found = [
            Bar(result.median, min(result.values), max(result.values), name)
            for measure, name in subject.measures
            if (result := record.board.get(key, measure)) is not None
        ]
        if found:
            rows.append(Row(record.name(key), found, ours=key == _OURS))
    if not rows:
        return None
    rows.sort(key=lambda row: row.bars[0].value, reverse=subject.better == "more")
    return Panel(
        subject.title,
        subject.unit,
        rows,
        better=f"{subject.better} is better",
        limit=_limit(rows) if subject.better == "less" else None,
    )


def _limit(rows: Sequence[Row]) -> float:
    """Return the end of an axis that keeps the fast products apart; the best is the first row."""
    return _TIMES_BEST * max(bar.value for bar in rows[0].bars)
