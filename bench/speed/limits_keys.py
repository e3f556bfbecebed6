"""Two worker processes of each version with a limit for each of 1,000 keys, and without limits."""

from bench.apps.noop import KEYS_VARIABLE
from bench.figures import Figure
from bench.flow.limits_keys import JUDGED, KINDS, LIMIT, PROCESSES
from bench.place import Place
from bench.sizes import Sizes
from bench.speed.drains import FREE, drain_both, report

__all__ = ["run"]

_LEAST_SPEED = 0.6


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal over no limit: 0.6."""
    kinds = {kind: parts for kind, (_, parts) in KINDS.items() if kind in (FREE, *JUDGED)}
    drains = drain_both(
        place,
        [(kind, PROCESSES) for kind in kinds],
        kinds,
        jobs=sizes.flow.drain_jobs,
        repetitions=sizes.flow.drain_repetitions,
        limit=LIMIT,
        variables={KEYS_VARIABLE: str(sizes.flow.keys)},
    )
    cases = {(kind, PROCESSES): f"{sizes.flow.keys:,} keys, {KINDS[kind][0]}" for kind in kinds}
    goals = {(kind, PROCESSES): _LEAST_SPEED for kind in JUDGED}
    return report("limits_keys", drains, cases, over_free=goals)
