"""Backlogs emptied by worker processes of both versions, in turns.

Each kind of limit has a database in each version. A repetition fills and empties all of them. The
producers stay connected, so a fill also gives a figure for bulk enqueues.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from statistics import median

from bench.apps.noop import LIMIT_VARIABLE
from bench.figures import Figure
from bench.flow.limited import Parts, set_limit
from bench.place import Place
from bench.rivals.product import PostgresContender
from bench.rivals.trunkline import open_trunkline
from bench.speed.pairs import NOW, Both, compare, in_order, processor_time, versions
from bench.worker.drain import Drain, drain_filled
from bench.worker.processes import Orders, producing

__all__ = ["FREE", "Drains", "drain_both", "report"]

# The kind that has no limit.
FREE = "none"

# A kind and how many processes work.
Case = tuple[str, int]


@dataclass(slots=True)
class Drains:
    """The drains of each case and version, and the jobs per second of their fills."""

    drains: dict[tuple[Case, str], list[Drain]] = field(default_factory=dict)
    fills: dict[tuple[Case, str], list[float]] = field(default_factory=dict)

    def rates(self, case: Case) -> Both:
        """Jobs per second of each version."""
        return {
            of: [d.rate for d in found] for (at, of), found in self.drains.items() if at == case
        }

    def cpu(self, case: Case) -> Both:
        """Microseconds of processor time per job, of workers and server, by version."""
        return {
            of: [d.worker_cpu + d.server_cpu for d in found]
            for (at, of), found in self.drains.items()
            if at == case
        }

    @property
    def all_fills(self) -> Both:
        """Jobs per second of the fills of all cases, by version."""
        fills: dict[str, list[float]] = {}
        for (_, of), found in self.fills.items():
            fills.setdefault(of, []).extend(found)
        return fills

    @property
    def faults(self) -> int:
        """The number of jobs that were lost or ran twice."""
        all_drains = [drain for drains in self.drains.values() for drain in drains]
        return sum(abs(drain.lost) + drain.repeated for drain in all_drains)


def drain_both(
    place: Place,
    cases: Sequence[Case],
    kinds: Mapping[str, Parts | None],
    *,
    jobs: int,
    repetitions: int,
    limit: str = "wide",
    variables: Mapping[str, str] | None = None,
) -> Drains:
    """Drain each case with each version; a kind is what the limit allows, or no limit."""
    drains = Drains()
    places = versions(place)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        path = folder / "slate"
        opened: dict[tuple[str, str], tuple[PostgresContender, Orders]] = {}
        for kind, parts in kinds.items():
            for of, its in places.items():
                limited = {LIMIT_VARIABLE: limit} if parts else {}
                contender = stack.enter_context(
                    open_trunkline(
                        its, key=f"drain_{kind}", variables={**(variables or {}), **limited}
                    )
                )
                if parts:
                    set_limit(contender.connection, limit, **parts)
                producer = stack.enter_context(producing(contender, path))
                opened[kind, of] = contender, producer
        for repetition in range(repetitions):
            for case in cases:
                for of in in_order(list(places), repetition):
                    contender, producer = opened[case[0], of]
                    seconds = producer.do("fill", 0, jobs)
                    drains.fills.setdefault((case, of), []).append(jobs / seconds)
                    drain = drain_filled(path, contender, jobs, processes=case[1])
                    drains.drains.setdefault((case, of), []).append(drain)
    return drains


def report(
    key: str,
    found: Drains,
    cases: Mapping[Case, str],
    *,
    vs_before: float | None = None,
    over_free: Mapping[Case, float] | None = None,
) -> list[Figure]:
    """Compare each case with before, and each limited case with the same without a limit, now."""
    figures = []
    has_limits = any(kind != FREE for kind, _ in cases)
    for case, text in cases.items():
        name = f"{key}_{case[0]}_{case[1]}" if has_limits else f"{key}_{case[1]}"
        figures += compare(name, text, found.rates(case), goal=vs_before)
        cpu = found.cpu(case)
        if not isnan(cpu[NOW][0]):
            figures.append(processor_time(name, cpu))
        if case[0] != FREE:
            free = found.rates((FREE, case[1]))[NOW]
            ratio = median(
                one / other for one, other in zip(found.rates(case)[NOW], free, strict=True)
            )
            goal = (over_free or {}).get(case)
            figures.append(Figure(f"{name}_ratio", ratio, "  over no limit, now", goal=goal))
    text = "lost or ran twice, all drains"
    figures.append(Figure(f"{key}_faults", found.faults, text, "jobs", goal=0, better="at most"))
    return figures
