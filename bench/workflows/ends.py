"""How long ends of one workflow wait for its lock, at a constant rate of single completions.

A call of ``complete`` includes the wait; the commit does not. So the wait is the time of the call
less that of the same call for a plain job, at the same percentile. Shapes: one set of jobs, where
ends share the lock, and as many steps of one job, each of which may be the last of its step.
"""

import time
from collections.abc import Callable
from statistics import median, quantiles
from typing import Any

from psycopg.types.json import Jsonb

from bench import fill
from bench.crew import run_together, wait_until
from bench.figures import Figure
from bench.place import TASK, Place
from bench.sizes import Sizes

__all__ = ["run"]

PROCESSES = 8
_CLAIM = (
    "select job_id, attempt from trunkline.claim("
    "p_worker => %s, p_queues => array[%s], p_limit => %s)"
)
_COMPLETE = (
    "select count(*) from trunkline.complete("
    "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[])"
)


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: 5 ms at the 99th percentile."""
    rate, seconds = sizes.workflows.ends_per_second, sizes.workflows.seconds
    jobs = int(rate * seconds)
    figures = []
    with place.database("ends") as dsn, fill.connect(dsn) as connection:
        fill.ready(connection, jobs, queue="plain")
        for shape in ("set", "steps"):
            connection.execute("select trunkline.start_workflow(%s)", (_graph(jobs, shape),))
        fill.analyze(connection)
        fill.checkpoint(connection)
        plain = _times(dsn, "plain", jobs, rate)
        base = 1e3 * quantiles(plain, n=100)[98]
        figures += [
            Figure(
                "workflow_end_plain", 1e3 * median(plain), "completion of a plain job, median", "ms"
            ),
            Figure("workflow_end_plain_p99", base, f"  99th percentile, {rate}/s", "ms"),
        ]
        for shape, text in (("set", "one set"), ("steps", "single steps")):
            times = [1e3 * one for one in _times(dsn, shape, jobs, rate)]
            wait = max(0.0, quantiles(times, n=100)[98] - base)
            figures += [
                Figure(f"workflow_end_{shape}", median(times), f"completion, {text}, median", "ms"),
                Figure(
                    f"workflow_end_{shape}_wait",
                    wait,
                    "  wait for the lock, 99th percentile",
                    "ms",
                    goal=5.0,
                    better="at most",
                ),
            ]
    return figures


def _graph(jobs: int, shape: str) -> Jsonb:
    last: dict[str, Any] = {"name": "last", "task": TASK, "queue": "last"}
    if shape == "set":
        many = {"name": "many", "task": TASK, "queue": shape, "items": [{}] * jobs}
        return Jsonb({"name": shape, "steps": [many, last | {"after": ["many"]}]})
    names = [f"step {n}" for n in range(jobs)]
    steps = [{"name": name, "task": TASK, "queue": shape} for name in names]
    return Jsonb({"name": shape, "steps": [*steps, last | {"after": names}]})


def _times(dsn: str, queue: str, jobs: int, rate: int) -> list[float]:
    """Return the times of all completions, in seconds."""
    answers = run_together(PROCESSES, _prepare, dsn, queue, jobs // PROCESSES, rate / PROCESSES)
    return [one for times in answers for one in times]


def _prepare(
    number: int, dsn: str, queue: str, jobs: int, rate: float
) -> Callable[[float], list[float]]:
    connection = fill.connect(dsn)
    worker = f"{queue}-{number}"
    held = connection.execute(_CLAIM, (worker, queue, jobs)).fetchall()

    def work(start: float) -> list[float]:
        times = []
        connection.autocommit = False
        for turn, (job, attempt) in enumerate(held):
            wait_until(start + (turn + number / PROCESSES) / rate)
            begin = time.monotonic()
            connection.execute(_COMPLETE, (worker, [job], [attempt]))
            times.append(time.monotonic() - begin)
            connection.commit()
        return times

    return work
