"""Two and four worker processes of each version under a wide limit, and without one."""

from bench.figures import Figure
from bench.flow import limits_wide
from bench.flow.limits_claim import TEXTS, WIDE
from bench.place import Place
from bench.sizes import Sizes
from bench.speed.drains import FREE, drain_both, report

__all__ = ["run"]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals over no limit: 0.85 with two processes and 0.75 with four."""
    cases = {
        (kind, count): f"{TEXTS[kind]}, {count} processes"
        for count in limits_wide.GOALS
        for kind in WIDE
    }
    drains = drain_both(
        place,
        list(cases),
        WIDE,
        jobs=sizes.flow.drain_jobs,
        repetitions=sizes.flow.drain_repetitions,
    )
    goals = {case: limits_wide.GOALS[case[1]] for case in cases if case[0] != FREE}
    return report("limits_wide", drains, cases, over_free=goals)
