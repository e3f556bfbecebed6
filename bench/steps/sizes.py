"""Sizes of the measures of steps."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "StepSizes"]


@dataclass(frozen=True, slots=True)
class StepSizes:
    """The sizes of one run."""

    repetitions: int
    # cost: steps of each handler.
    steps: int
    # workflows: jobs of ours, and workflows of the rival.
    jobs: int
    rival_workflows: int


FULL = StepSizes(repetitions=5, steps=400, jobs=2_000, rival_workflows=400)
QUICK = StepSizes(repetitions=1, steps=20, jobs=50, rival_workflows=10)
