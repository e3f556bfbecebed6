"""Drains by worker processes, in turns: without a limit and with several kinds of them."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.apps.noop import LIMIT_VARIABLE
from bench.figures import Figure
from bench.flow.limited import Parts, set_limit
from bench.place import Place
from bench.rivals.trunkline import open_trunkline
from bench.sizes import Sizes
from bench.worker.drain import Drain, drain_once

__all__ = ["Drains", "drain_in_turns", "tell"]

# By kind and number of processes.
Drains = dict[tuple[str, int], list[Drain]]


def drain_in_turns(
    place: Place,
    sizes: Sizes,
    kinds: Mapping[str, Parts | None],
    processes: Sequence[int],
    *,
    limit: str,
    variables: Mapping[str, str] | None = None,
) -> Drains:
    """Drain each kind in a separate database; a kind is what the limit allows, or no limit."""
    drains: Drains = {(kind, count): [] for count in processes for kind in kinds}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        contenders = {}
        for kind, parts in kinds.items():
            limited = {LIMIT_VARIABLE: limit} if parts else {}
            contenders[kind] = stack.enter_context(
                open_trunkline(
                    place, key=f"drain_{kind}", variables={**(variables or {}), **limited}
                )
            )
            if parts:
                set_limit(contenders[kind].connection, limit, **parts)
        for _ in range(sizes.flow.drain_repetitions):
            for (kind, count), done in drains.items():
                jobs = sizes.flow.drain_jobs
                done.append(drain_once(folder, contenders[kind], jobs, processes=count))
    return drains


def tell(
    key: str,
    drains: Drains,
    texts: Mapping[str, str],
    goals: Mapping[tuple[str, int], float],
    *,
    free: str = "none",
) -> list[Figure]:
    """Return the speed of each kind, also as a ratio to the kind without a limit."""
    figures = []
    for (kind, count), found in drains.items():
        name, rates = f"{key}_{kind}_{count}", [drain.rate for drain in found]
        figures.append(Figure(name, median(rates), f"{texts[kind]}, {count} processes", "jobs/s"))
        cpu = median(drain.worker_cpu + drain.server_cpu for drain in found)
        text = "  processor time, client and server, with process start"
        figures.append(Figure(f"{name}_cpu", cpu, text, "us/job"))
        if kind != free:
            others = [drain.rate for drain in drains[free, count]]
            ratio = median(one / other for one, other in zip(rates, others, strict=True))
            goal = goals.get((kind, count))
            figures.append(Figure(f"{name}_ratio", ratio, "  over no limit", goal=goal))
    faults = sum(abs(drain.lost) + drain.repeated for found in drains.values() for drain in found)
    text = "lost or ran twice, all drains"
    figures.append(Figure(f"{key}_faults", faults, text, "jobs", goal=0, better="at most"))
    return figures
