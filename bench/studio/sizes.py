"""Sizes of the measures of profile studio."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "StudioSizes"]


@dataclass(frozen=True, slots=True)
class StudioSizes:
    """The sizes of one run."""

    # Finished tasks, open orders, each of its own user, and claims timed.
    finished: int
    orders: int
    claims: int


FULL = StudioSizes(finished=1_000_000, orders=200, claims=1_000)
QUICK = StudioSizes(finished=10_000, orders=10, claims=20)
