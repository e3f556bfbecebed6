"""How fast workers empty a backlog under a wide limit, over the same without a limit.

Two and four processes of `trunkline worker` with no-op jobs. Three kinds take turns, each in its
own database: no limit, a global concurrency far above the load, a rate far above the load.
"""

from bench.figures import Figure
from bench.flow.drains import drain_in_turns, tell
from bench.flow.limits_claim import TEXTS, WIDE
from bench.place import Place
from bench.sizes import Sizes

__all__ = ["run"]

LIMIT = "wide"
# By number of processes: the goal for the ratio to the speed without a limit.
GOALS = {2: 0.85, 4: 0.75}


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 0.85 with two processes and 0.75 with four."""
    drains = drain_in_turns(place, sizes, WIDE, list(GOALS), limit=LIMIT)
    goals = {(kind, count): goal for kind in WIDE for count, goal in GOALS.items()}
    return tell("limits_wide", drains, TEXTS, goals)
