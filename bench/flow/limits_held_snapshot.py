"""A limited drain at full speed while another connection holds an old snapshot.

Vacuum can remove no dead rows meanwhile, neither of jobs nor of bucket states. Two processes claim
and complete under a wide limit of requests and slots.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import psycopg

from bench import fill
from bench.crew import run_together
from bench.figures import Figure
from bench.flow.limited import QUEUE, fill_limited
from bench.place import Place
from bench.sides import FunctionSide
from bench.sizes import Sizes

__all__ = ["run"]

WORKERS = 2
LIMIT = {"wide": {"concurrency": 100_000, "requests_per_minute": 1_000_000_000}}
# The backlog is this multiple of what the speed of a short run predicts.
_PROBE_SECONDS = 3.0
_SPARE = 1.5
# After this many empty claims in a row, the backlog is used up.
_GIVE_UP = 200

# When a batch ended, and its number of jobs.
_Batches = list[tuple[float, int]]


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.8."""
    seconds, window = sizes.flow.held_seconds, sizes.flow.held_window
    with place.database("limits_held") as dsn, fill.connect(dsn) as connection:
        fill_limited(connection, sizes.flow.held_probe, LIMIT)
        fill.analyze(connection)
        probe = run_together(WORKERS, _prepare, dsn, min(_PROBE_SECONDS, seconds))
        speed = sum(jobs for batches in probe for _, jobs in batches) / _end(probe)
        backlog = round(speed * seconds * _SPARE)
        fill_limited(connection, backlog, LIMIT)
        fill.analyze(connection)
        fill.checkpoint(connection)
        with psycopg.connect(dsn) as holder:
            holder.execute("set transaction isolation level repeatable read")
            holder.execute("select count(*) from trunkline.tasks")
            batches = run_together(WORKERS, _prepare, dsn, seconds)
    # Shorter than requested only if the backlog was used up.
    end = _end(batches)
    print(f"\n  jobs/s, every {window:g} s:")
    for number in range(round(end / window)):
        print(f"    {_rate(batches, number * window, (number + 1) * window):>10,.0f}")
    first, last = _rate(batches, 0.0, window), _rate(batches, end - window, end)
    return [
        Figure("limits_held_seconds", end, f"length, {backlog:,} jobs enqueued before", "s"),
        Figure("limits_held_first", first, f"first {window:g} s", "jobs/s"),
        Figure("limits_held_last", last, f"last {window:g} s", "jobs/s"),
        Figure("limits_held_ratio", last / first, "last over first", goal=0.8),
    ]


def _end(batches: Sequence[_Batches]) -> float:
    return min(found[-1][0] for found in batches)


def _rate(batches: Sequence[_Batches], begin: float, end: float) -> float:
    inside = sum(jobs for found in batches for at, jobs in found if begin < at <= end)
    return inside / (end - begin)


def _prepare(number: int, dsn: str, seconds: float) -> Callable[[float], _Batches]:
    return partial(_work, FunctionSide(dsn, f"worker-{number}", QUEUE), seconds)


def _work(side: FunctionSide, seconds: float, start: float) -> _Batches:
    batches: _Batches = []
    nothing = 0
    while time.monotonic() - start < seconds and nothing < _GIVE_UP:
        jobs, attempts = side.claim()
        if jobs:
            batches.append((time.monotonic() - start, side.complete(jobs, attempts)))
        nothing = 0 if jobs else nothing + 1
    side.close()
    return batches
