"""The planning table of profile studio: what the source plans, and what measured figures say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, floor
from typing import Final

__all__ = ["TIERS", "Measured", "Tier", "capacity", "rows", "workers"]

# What the source plans with, in dollars a day for one worker.
DOLLARS: Final = 7
# Of an order, by type.
_TASKS: Final = 16
_FINAL: Final = "finalize_job"


@dataclass(frozen=True, slots=True)
class Tier:
    """A row of the source's table: up to so many orders a minute, and what it promises."""

    per_minute: int
    workers: int
    # Of one order, as the source writes it.
    response: str


TIERS: Final = (
    Tier(10, 1, "~5 min"),
    Tier(100, 5, "~2 min"),
    Tier(1000, 20, "~1 min"),
    Tier(10_000, 50, "<1 min"),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What one worker of each pool did, and how long one order took."""

    # Tasks a second of one worker, by type.
    rates: Mapping[str, float]
    # On an idle system, and the median of so many orders that start at once.
    idle_seconds: float
    loaded_seconds: float
    orders: int = 6


def workers(measured: Measured, per_minute: float) -> dict[str, int]:
    """How many workers of each pool carry out so many orders a minute."""
    return {
        kind: ceil(per_minute * _tasks(kind) / 60 / rate) for kind, rate in measured.rates.items()
    }


def capacity(measured: Measured, count: int) -> float:
    """How many orders a minute so many workers carry out, if the pools share them as needed."""
    return 60 * count / sum(_tasks(kind) / rate for kind, rate in measured.rates.items())


def rows(measured: Measured) -> Iterator[str]:
    """The table as text, with a note on the measured time of an order."""
    yield f"{'':10}   {'source plans':^28}   {'as measured on this machine':^57}"
    yield (
        "orders/min   workers  $/day  order takes   "
        "they do/min  text   pdf  audio  final     all    $/day  order takes"
    )
    span = f"{_seconds(measured.idle_seconds)} to {_seconds(measured.loaded_seconds)}"
    for tier in TIERS:
        needed = workers(measured, tier.per_minute)
        total = sum(needed.values())
        yield (
            f"{tier.per_minute:10,}   {tier.workers:7,}  {tier.workers * DOLLARS:5,}"
            f"  {tier.response:>11}   {floor(capacity(measured, tier.workers)):11,}"
            f"  {needed['text_generation']:4,}  {needed['pdf_generation']:4,}"
            f"  {needed['audio_generation']:5,}  {needed[_FINAL]:5,}"
            f"  {total:6,}  {total * DOLLARS:7,}  {span:>11}"
        )
    yield (
        f"An order took {_seconds(measured.idle_seconds)} alone, and"
        f" {_seconds(measured.loaded_seconds)} (median) of {measured.orders} that started at once,"
        " with one worker in each pool."
    )


def _tasks(kind: str) -> int:
    return 1 if kind == _FINAL else _TASKS


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 10 else f"{value:.0f} s"
