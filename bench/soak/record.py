"""The raw data of a run."""

from dataclasses import dataclass

from bench.apps.slate import Slate
from bench.soak.account import Verdict
from bench.soak.calls import TimedCall
from bench.soak.phases import Phase
from bench.soak.sampler import Sample
from bench.soak.specials import Special

__all__ = ["Batch", "Course", "Stretch"]

# First number, jobs, when the call began, when it had committed.
Batch = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Stretch:
    """A phase: its begin and end in nanoseconds of the monotonic clock, and the arrivals."""

    phase: Phase
    begin: int
    end: int
    batches: list[Batch]


@dataclass(frozen=True, slots=True)
class Course:
    """All data of a run."""

    capacity: float
    rate: float
    stretches: list[Stretch]
    calls: list[TimedCall]
    specials: list[Special]
    samples: list[Sample]
    slate: Slate
    verdicts: dict[str, Verdict]
    # Seconds from the last arrival until no due job was left.
    drained: float
