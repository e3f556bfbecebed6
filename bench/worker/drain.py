"""How fast one worker process empties a backlog of jobs that do nothing.

The clock runs, as in the baseline, from the start of the first handler until a query on another
connection finds the backlog empty. That query runs only after every handler has started, so it adds
no load before. Contenders take turns; jobs are counted after each.
"""

import time
from dataclasses import dataclass
from math import isnan, nan
from pathlib import Path
from statistics import median

from bench.apps.slate import Slate
from bench.figures import Figure
from bench.rivals.product import Contender, PostgresContender
from bench.sides import other_backends, process_cpu_seconds
from bench.sizes import Sizes
from bench.worker.processes import producing, wait_for, working
from bench.worker.stage import Stage

__all__ = ["Drain", "drain_filled", "drain_once", "run"]

_PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Drain:
    """One emptied backlog."""

    rate: float
    # From the start of the process; includes jobs claimed before the first handler started.
    rate_from_start: float
    lost: int
    repeated: int
    worker_cpu: float
    server_cpu: float


def run(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Measure; goal 2.5 times the rival."""
    done: dict[str, list[Drain]] = {each.key: [] for each in stage.contenders}
    for _ in range(sizes.drain_repetitions):
        for contender in stage.contenders:
            done[contender.key].append(drain_once(stage.folder, contender, sizes.drain_jobs))
    figures = []
    for contender in stage.contenders:
        figures += _describe(contender, done[contender.key], sizes.drain_jobs)
    for rival in stage.rivals:
        figures += _compare(stage.ours, rival, done)
    return figures


def drain_once(
    folder: Path, contender: PostgresContender, jobs: int, *, processes: int = 1
) -> Drain:
    """Fill its backlog and let worker processes empty it; the folder is for the slate."""
    path = folder / "slate"
    contender.forget()
    with producing(contender, path) as producer:
        producer.do("fill", 0, jobs)
    return drain_filled(path, contender, jobs, processes=processes)


def drain_filled(
    path: Path, contender: PostgresContender, jobs: int, *, processes: int = 1
) -> Drain:
    """Let worker processes empty a backlog of jobs numbered from 0; the path is the slate.

    Jobs that ended before do not count.
    """
    slate = Slate.create(path, jobs)
    contender.settle()
    ends_before, ended_before = contender.ended() or (0, 0)
    cpu_before = _server_cpu(contender)
    with working(contender, path, processes=processes) as worker:
        wait_for(lambda: slate.unstarted == 0, worker, seconds=_PATIENCE)
        wait_for(contender.is_empty, worker, seconds=_PATIENCE)
        end = time.monotonic_ns()
        worker_cpu, server_cpu = worker.cpu_seconds, _server_cpu(contender) - cpu_before
    ends, ended = contender.ended() or (0, 0)
    ends, ended = ends - ends_before, ended - ended_before
    return Drain(
        rate=jobs / (end - min(slate.starts)) * 1e9,
        rate_from_start=jobs / (end - worker.started) * 1e9,
        lost=jobs - ended,
        repeated=max(slate.repeated, ends - ended),
        worker_cpu=worker_cpu / jobs * 1e6,
        server_cpu=server_cpu / jobs * 1e6,
    )


def _server_cpu(contender: PostgresContender) -> float:
    """Processor time of the server processes of all other clients of this database."""
    spent = [process_cpu_seconds(pid) for pid in other_backends(contender.connection)]
    # One of them may just have ended; if none can be read, the server runs elsewhere.
    elsewhere = bool(spent) and all(map(isnan, spent))
    return nan if elsewhere else sum(seconds for seconds in spent if not isnan(seconds))


def _describe(contender: Contender, drains: list[Drain], jobs: int) -> list[Figure]:
    key, name = contender.key, contender.name
    rates = [drain.rate for drain in drains]
    return [
        Figure(f"drain_{key}", median(rates), f"{name}: {jobs:,} jobs", "jobs/s"),
        Figure(f"drain_{key}_slowest", min(rates), "  slowest turn", "jobs/s"),
        Figure(f"drain_{key}_fastest", max(rates), "  fastest turn", "jobs/s"),
        Figure(
            f"drain_{key}_from_start",
            median(drain.rate_from_start for drain in drains),
            "  from the start of the process",
            "jobs/s",
        ),
        Figure(
            f"drain_{key}_worker_cpu",
            median(drain.worker_cpu for drain in drains),
            "  processor time of the worker",
            "us/job",
        ),
        Figure(
            f"drain_{key}_server_cpu",
            median(drain.server_cpu for drain in drains),
            "  processor time of its connections",
            "us/job",
        ),
        Figure(
            f"drain_{key}_lost",
            sum(drain.lost for drain in drains),
            "  lost",
            "jobs",
            goal=0,
            better="at most",
        ),
        Figure(
            f"drain_{key}_repeated",
            sum(drain.repeated for drain in drains),
            "  ran twice",
            "jobs",
            goal=0,
            better="at most",
        ),
    ]


def _compare(us: Contender, rival: Contender, done: dict[str, list[Drain]]) -> list[Figure]:
    ratios = [
        mine.rate / theirs.rate for mine, theirs in zip(done[us.key], done[rival.key], strict=True)
    ]
    key = f"drain_vs_{rival.key}"
    return [
        Figure(
            key,
            median(ratios),
            f"over {rival.name}",
            goal=2.5 if rival.key == "pgqueuer" else None,
        ),
        Figure(f"{key}_least", min(ratios), "  lowest turn"),
        Figure(f"{key}_most", max(ratios), "  highest turn"),
    ]
