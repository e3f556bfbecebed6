"""The published figures, with their order and names."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["GROUPS", "MEASURES", "Column", "Group", "shown"]

# The measuring modules of this package, in the order of the run.
MEASURES = ("enqueue", "bulk", "drain", "drain_1ms", "latency")


@dataclass(frozen=True, slots=True)
class Column:
    """A figure, by its name in the record."""

    measure: str
    label: str


@dataclass(frozen=True, slots=True)
class Group:
    """Figures of one unit, shown side by side."""

    title: str
    unit: str
    better: Literal["more", "less"]
    columns: tuple[Column, ...]


GROUPS = (
    Group(
        "Enqueue",
        "jobs/s",
        "more",
        (
            Column("enqueue_1", "one by one"),
            Column("enqueue_10", "ten at once"),
            Column("bulk", "bulk call"),
        ),
    ),
    Group(
        "Drain of a backlog",
        "jobs/s",
        "more",
        (
            Column("drain_1", "1 process"),
            Column("drain_2", "2 processes"),
            Column("drain_1ms", "jobs of 1 ms"),
            Column("drain_1_from_start", "1 process, from its start"),
        ),
    ),
    Group(
        "Pick-up by an idle worker, from the commit",
        "ms",
        "less",
        (Column("latency_p50", "p50"), Column("latency_p95", "p95"), Column("latency_p99", "p99")),
    ),
    Group(
        "Pick-up by an idle worker, from before the call that enqueues",
        "ms",
        "less",
        (
            Column("latency_call_p50", "p50"),
            Column("latency_call_p95", "p95"),
            Column("latency_call_p99", "p99"),
        ),
    ),
    Group(
        "Processor time of a drain",
        "seconds per 1,000 jobs",
        "less",
        (
            Column("cpu_client", "client"),
            Column("cpu_server", "server"),
            Column("cpu", "together"),
            Column("cpu_from_start", "together, from its start"),
        ),
    ),
    Group(
        "What a drain leaves on the server, per job",
        "",
        "less",
        (Column("wal", "bytes of WAL"), Column("dead_tuples", "dead rows")),
    ),
)


def shown(value: float) -> str:
    """Format a number with its significant digits."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3f}"
