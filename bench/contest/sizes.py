"""How much the contest does: in full, or just enough to see that its code works."""

from dataclasses import dataclass

from bench.rivals.product import Product

__all__ = ["FULL", "QUICK", "ContestSizes"]


@dataclass(frozen=True, slots=True)
class ContestSizes:
    """The sizes of one run."""

    repetitions: int
    # The most jobs of a drain; slow products get what they drain in so many seconds.
    drain_jobs: int
    drain_seconds: float
    # Single enqueues and bulk calls go in slices, products in turns: calls one at a time and ten
    # at once in a slice, and how many slices.
    single_calls: int
    concurrent_calls: int
    slices: int
    # Jobs picked up by an idle worker, in one repetition.
    pickups: int
    # How long a product may start no job before it counts as stuck; what it gets for one turn;
    # what the whole run gets.
    stalled_seconds: float
    turn_seconds: float
    run_seconds: float

    def jobs(self, product: Product) -> int:
        """Give the size of its drains."""
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

# Patient, because the tests also run it on busy machines.
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
