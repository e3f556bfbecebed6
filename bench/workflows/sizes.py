"""Sizes of the measures of workflows."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "WorkflowSizes"]


@dataclass(frozen=True, slots=True)
class WorkflowSizes:
    """The sizes of one run."""

    # Jobs of the fan-out, and how often it is started and drained.
    jobs: int
    repetitions: int
    # Ends of one workflow in a second, and for how many seconds.
    ends_per_second: int
    seconds: float


FULL = WorkflowSizes(jobs=10_000, repetitions=7, ends_per_second=200, seconds=20.0)
QUICK = WorkflowSizes(jobs=1_000, repetitions=2, ends_per_second=100, seconds=1.0)
