"""One and two worker processes of each version empty a backlog that their clients enqueue."""

from bench.figures import Figure
from bench.place import Place
from bench.sizes import Sizes
from bench.speed.drains import FREE, drain_both, report
from bench.speed.pairs import compare

__all__ = ["run"]

CASES = {(FREE, 1): "one process", (FREE, 2): "two processes"}


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 0.97 for drains and 0.85 for bulk enqueues."""
    drains = drain_both(
        place,
        list(CASES),
        {FREE: None},
        jobs=sizes.drain_jobs,
        repetitions=sizes.drain_repetitions,
    )
    return [
        *report("drain", drains, CASES, vs_before=0.97),
        *compare("bulk_enqueue", "bulk enqueue, client", drains.all_fills, goal=0.85),
    ]
