"""How fast workers empty a backlog under a wide limit, over the same without any.

Two and four processes of `trunkline worker` and jobs that do nothing. Three kinds take turns, each
in a database of its own: no limit, a global concurrency far above need, a rate far above the load.
"""

import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.apps.noop import LIMIT_VARIABLE
from bench.figures import Figure
from bench.flow.limited import set_limit
from bench.flow.limits_claim import TEXTS, WIDE
from bench.place import Place
from bench.rivals.trunkline import open_trunkline
from bench.sizes import Sizes
from bench.worker.drain import Drain, drain_once

__all__ = ["run"]

LIMIT = "wide"
# By processes: what must be left of the speed without a limit.
GOALS = {2: 0.85, 4: 0.75}


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 0.85 with two processes and 0.75 with four."""
    drains: dict[tuple[str, int], list[Drain]] = {
        (kind, processes): [] for processes in GOALS for kind in WIDE
    }
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        contenders = {}
        for kind, parts in WIDE.items():
            contenders[kind] = stack.enter_context(
                open_trunkline(
                    place, key=f"wide_{kind}", variables={LIMIT_VARIABLE: LIMIT} if parts else {}
                )
            )
            if parts:
                set_limit(contenders[kind].connection, LIMIT, **parts)
        for _ in range(sizes.flow.drain_repetitions):
            for (kind, processes), done in drains.items():
                jobs = sizes.flow.drain_jobs
                done.append(drain_once(folder, contenders[kind], jobs, processes=processes))
    figures = []
    for (kind, processes), found in drains.items():
        key, rates = f"limits_wide_{kind}_{processes}", [drain.rate for drain in found]
        text = f"{TEXTS[kind]}, {processes} processes"
        figures.append(Figure(key, median(rates), text, "jobs/s"))
        cpu = median(drain.worker_cpu + drain.server_cpu for drain in found)
        figures.append(Figure(f"{key}_cpu", cpu, "  processor time, both sides", "us/job"))
        if WIDE[kind] is not None:
            free = [drain.rate for drain in drains["none", processes]]
            ratio = median(one / other for one, other in zip(rates, free, strict=True))
            figures.append(Figure(f"{key}_ratio", ratio, "  over no limit", goal=GOALS[processes]))
    faults = sum(abs(drain.lost) + drain.repeated for found in drains.values() for drain in found)
    text = "lost or ran twice, all drains"
    figures.append(Figure("limits_wide_faults", faults, text, "jobs", goal=0, better="at most"))
    return figures
