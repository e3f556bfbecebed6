"""How long a soak is and how much it fills in."""

from dataclasses import dataclass
from pathlib import Path

from bench.rivals.environment import CACHE

__all__ = ["FULL", "QUICK", "SPEED", "SoakSizes"]


@dataclass(frozen=True, slots=True)
class SoakSizes:
    """The sizes of one run."""

    # Of arrivals, in all phases together; measuring capacity and filling in come on top.
    minutes: float
    capacity_seconds: float
    history: int
    scheduled: int
    # Where the record and the chart go.
    results: Path


FULL = SoakSizes(
    minutes=10.0,
    capacity_seconds=20.0,
    history=5_000_000,
    scheduled=1_000_000,
    results=Path(__file__).parents[1] / "results",
)

# Not to where the real ones are.
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
