"""Sizes of the contest: in full, or just enough to check that its code works."""

from dataclasses import dataclass

from bench.rivals.product import Product

__all__ = ["FULL", "QUICK", "ContestSizes"]


@dataclass(frozen=True, slots=True)
class ContestSizes:
    """The sizes of one run."""

    repetitions: int
    # The most jobs of a drain; slow products get as many as they drain in this many seconds.
    drain_jobs: int
    drain_seconds: float
    # Products take turns in slices of enqueues. Calls of a slice, one at a time and ten at once,
    # and the number of slices.
    single_calls: int
    concurrent_calls: int
    slices: int
    # Jobs picked up by an idle worker, in one repetition.
    pickups: int
    # Seconds without a started job until a product counts as stuck; seconds for one turn; seconds
    # for the complete run.
    stalled_seconds: float
    turn_seconds: float
    run_seconds: float

    def jobs(self, product: Product) -> int:
        """Return the size of a product's drains."""
        return min(self.drain_jobs, max(int(product.pace * self.drain_seconds), 1))


FULL = ContestSizes(
    repetitions=3,
    drain_jobs=50_000,
    drain_seconds=6.0,
    single_calls=200,
    concurrent_calls=400,
    slices=5,
    pickups=335,
    stalled_seconds=25.0,
    turn_seconds=90.0,
    run_seconds=36 * 60.0,
)

# Long, because the tests also run it on busy machines.
QUICK = ContestSizes(
    repetitions=1,
    drain_jobs=300,
    drain_seconds=1.0,
    single_calls=20,
    concurrent_calls=40,
    slices=2,
    pickups=20,
    stalled_seconds=60.0,
    turn_seconds=180.0,
    run_seconds=480.0,
)
