"""The length of a soak and the number of jobs that it inserts."""

from dataclasses import dataclass
from pathlib import Path

from bench.rivals.environment import CACHE

__all__ = ["FULL", "QUICK", "SPEED", "SoakSizes"]


@dataclass(frozen=True, slots=True)
class SoakSizes:
    """The sizes of one run."""

    # Minutes of arrivals in all phases; measuring capacity and inserting the history take longer.
    minutes: float
    capacity_seconds: float
    history: int
    scheduled: int
    # The folder of the record and the chart.
    results: Path


FULL = SoakSizes(
    minutes=10.0,
    capacity_seconds=20.0,
    history=5_000_000,
    scheduled=1_000_000,
    results=Path(__file__).parents[1] / "results",
)

# Not the folder of the real results.
SPEED = SoakSizes(
    minutes=1.25,
    capacity_seconds=8.0,
    history=500_000,
    scheduled=100_000,
    results=CACHE / "speed",
)
QUICK = SoakSizes(
    minutes=0.25, capacity_seconds=2.0, history=5_000, scheduled=100_000, results=CACHE / "quick"
)
