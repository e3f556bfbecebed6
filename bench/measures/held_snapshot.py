"""Full speed for 90 s while another connection holds an old snapshot.

Vacuum can remove no dead rows meanwhile. Two processes claim and complete with kept positions. A
third makes a full scan every 10 s, as a worker does to find jobs that rolled-back claims left. The
low lane has a backlog. Other jobs become due all the time and are promoted into the low, a middle
and a high lane, so each claim visits all three.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import isnan

import psycopg

from bench import fill
from bench.crew import run_together, wait_until
from bench.figures import Figure
from bench.place import Place
from bench.sides import BATCH, FunctionSide, cpu_seconds
from bench.sizes import Sizes

__all__ = ["run"]

QUEUE = "held"
PRIORITIES = (0, 5, 10)
WORKERS = 2

_LOOK_EVERY = 10.0
# The backlog is this multiple of what the speed of a short run predicts.
_PROBE_SECONDS = 3.0
_SPARE = 1.5


@dataclass(frozen=True, slots=True)
class _Batch:
    """One claim and its completion: its end, its jobs, the processor time so far."""

    at: float
    jobs: int
    cpu: float


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.8."""
    seconds, window = sizes.held_seconds, sizes.held_window
    with place.database("held") as dsn, fill.connect(dsn) as connection:
        fill.ready(connection, sizes.held_probe, queue=QUEUE)
        fill.scheduled(connection, 1, queue=QUEUE, priorities=PRIORITIES, seconds=1.0)
        probe = run_together(WORKERS, _prepare, dsn, min(_PROBE_SECONDS, seconds))
        speed = sum(batch.jobs for batches in probe for batch in batches) / max(
            batches[-1].at for batches in probe
        )
        backlog = round(speed * seconds * _SPARE)
        fill.ready(connection, backlog, queue=QUEUE)
        fill.analyze(connection)
        fill.checkpoint(connection)
        with psycopg.connect(dsn) as holder:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select count(*) from trunkline.tasks")
            fill.scheduled(
                connection,
                sizes.held_scheduled,
                queue=QUEUE,
                priorities=PRIORITIES,
                seconds=seconds,
            )
            answers = run_together(WORKERS + 1, _prepare, dsn, seconds)
    workers, rescan = answers[:WORKERS], answers[WORKERS]
    # Shorter than requested only if the backlog was used up.
    end = min(batches[-1].at for batches in workers)
    _print_course(workers, window, end)
    first = [_rate(batches, 0.0, window) for batches in workers]
    last = [_rate(batches, end - window, end) for batches in workers]
    cpu_first = sum(cpu for _, cpu in first) / sum(jobs for jobs, _ in first)
    cpu_last = sum(cpu for _, cpu in last) / sum(jobs for jobs, _ in last)
    jobs_first, jobs_last = (sum(jobs for jobs, _ in part) / window for part in (first, last))
    figures = [
        Figure("held_snapshot_seconds", end, f"length, {backlog:,} jobs enqueued before", "s"),
        Figure("held_snapshot_first", jobs_first, f"first {window:g} s", "jobs/s"),
        Figure("held_snapshot_last", jobs_last, f"last {window:g} s", "jobs/s"),
        Figure("held_snapshot_ratio", jobs_last / jobs_first, "last over first", goal=0.8),
        Figure(
            "held_snapshot_look",
            max((batch.cpu for batch in rescan), default=0.0) * 1e3,
            "longest full scan",
            "ms",
        ),
    ]
    if not isnan(cpu_first):
        figures.append(
            Figure(
                "held_snapshot_cpu_ratio",
                cpu_first / cpu_last,
                "processor time per job, first over last",
            )
        )
    return figures


def _print_course(workers: list[list[_Batch]], window: float, end: float) -> None:
    """Print each window, which shows whether a ratio is a trend or a burst of other load."""
    print(f"\n  jobs/s and us of processor time per job, every {window:g} s:")
    for number in range(round(end / window)):
        parts = [_rate(batches, number * window, (number + 1) * window) for batches in workers]
        jobs, cpu = (sum(part) for part in zip(*parts, strict=True))
        print(f"    {jobs / window:>10,.0f} {cpu / max(jobs, 1) * 1e6:>8.1f}")


def _rate(batches: list[_Batch], begin: float, end: float) -> tuple[int, float]:
    """Return the jobs and the processor time of one process within a window."""
    inside = [batch for batch in batches if begin < batch.at <= end]
    before = [batch for batch in batches if batch.at <= begin]
    start = before[-1].cpu if before else 0.0
    cpu = inside[-1].cpu - start if inside else 0.0
    return sum(batch.jobs for batch in inside), cpu


def _prepare(number: int, dsn: str, seconds: float) -> Callable[[float], list[_Batch]]:
    side = FunctionSide(dsn, f"worker-{number}", QUEUE, keep=number < WORKERS)
    return partial(_work if number < WORKERS else _look, side, seconds)


def _work(side: FunctionSide, seconds: float, start: float) -> list[_Batch]:
    batches = []
    cpu = cpu_seconds(side.connection)
    while (at := time.monotonic() - start) < seconds:
        jobs, attempts = side.claim()
        done = side.complete(jobs, attempts) if jobs else 0
        at = time.monotonic() - start
        batches.append(_Batch(at, done, cpu_seconds(side.connection) - cpu))
        if done < BATCH:
            break
    return batches


def _look(side: FunctionSide, seconds: float, start: float) -> list[_Batch]:
    """Scan from the start at intervals; for a scan, cpu is its duration."""
    looks = []
    at = _LOOK_EVERY
    while at < seconds:
        wait_until(start + at)
        begin = time.monotonic()
        jobs, attempts = side.claim()
        looks.append(_Batch(at, len(jobs), time.monotonic() - begin))
        if jobs:
            side.complete(jobs, attempts)
        at += _LOOK_EVERY
    return looks
