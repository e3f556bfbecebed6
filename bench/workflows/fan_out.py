"""A fan-out of 10,000 jobs with a fan-in: its start, and its drain against plain jobs, in turns.

Two processes claim and complete at batch 100, without handlers, so the engine's share shows.
"""

import time
from collections.abc import Callable
from statistics import median

import psycopg
from psycopg.types.json import Jsonb

from bench import fill
from bench.crew import run_together
from bench.figures import Figure
from bench.place import TASK, Place
from bench.sizes import Sizes

__all__ = ["run"]

PROCESSES = 2
_BATCH = 100
_CLAIM = (
    "select job_id, attempt from trunkline.claim("
    "p_worker => %s, p_queues => array[%s], p_limit => %s)"
)
_COMPLETE = (
    "select count(*) from trunkline.complete("
    "p_worker => %s, p_jobs => %s::uuid[], p_attempts => %s::integer[])"
)


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals: start within 2 s, drain at 0.7 of plain jobs."""
    jobs = sizes.workflows.jobs
    starts, plain, ratios = [], [], []
    with place.database("fan_out") as dsn, fill.connect(dsn) as connection:
        for number in range(sizes.workflows.repetitions + 1):
            queue = f"flow{number}"
            begin = time.monotonic()
            connection.execute("select trunkline.start_workflow(%s)", (_graph(jobs, queue),))
            started = time.monotonic() - begin
            fill.ready(connection, jobs, queue=f"plain{number}")
            fill.analyze(connection)
            fill.checkpoint(connection)
            plain_rate = _drain(dsn, f"plain{number}")
            flow_rate = _drain(dsn, queue)
            # The first round warms up.
            if number:
                starts.append(started)
                plain.append(plain_rate)
                ratios.append(flow_rate / plain_rate)
        ended = connection.execute(
            "select count(*) filter (where state = 'completed'), count(*) from trunkline.workflows"
        ).fetchone()
    unfinished = 0 if ended is None else ended[1] - ended[0]
    return [
        Figure(
            "workflow_start",
            median(starts),
            f"start of {jobs:,} jobs with a fan-in",
            "s",
            goal=2.0,
            better="at most",
        ),
        Figure("workflow_plain", median(plain), "drain of plain jobs", "jobs/s"),
        Figure("workflow_drain_ratio", median(ratios), "drain of a fan-out over plain", goal=0.7),
        Figure(
            "workflow_unfinished",
            unfinished,
            "workflows that did not complete",
            "flows",
            goal=0,
            better="at most",
        ),
    ]


def _graph(jobs: int, queue: str) -> Jsonb:
    items = [{"payload": {"number": n, "text": "twenty bytes of text"}} for n in range(jobs - 1)]
    many = {"name": "many", "task": TASK, "queue": queue, "items": items}
    last = {"name": "last", "task": TASK, "queue": queue, "after": ["many"]}
    return Jsonb({"name": "fan out", "steps": [many, last]})


def _drain(dsn: str, queue: str) -> float:
    """Return jobs per second, from the common start to the last end."""
    answers = run_together(PROCESSES, _prepare, dsn, queue)
    return sum(done for done, _ in answers) / max(seconds for _, seconds in answers)


def _prepare(number: int, dsn: str, queue: str) -> Callable[[float], tuple[int, float]]:
    connection = fill.connect(dsn)
    worker = f"{queue}-{number}"

    def work(start: float) -> tuple[int, float]:
        done, end = 0, start
        empty = 0
        # The other process may hold the last batch of the fan-out before the fan-in opens.
        while empty < 3:
            rows = connection.execute(_CLAIM, (worker, queue, _BATCH)).fetchall()
            if not rows:
                empty += 1
                time.sleep(0.01)
                continue
            empty = 0
            _complete(connection, worker, rows)
            done += len(rows)
            end = time.monotonic()
        return done, end - start

    return work


def _complete(connection: psycopg.Connection, worker: str, rows: list[tuple[object, ...]]) -> None:
    jobs, attempts = [row[0] for row in rows], [row[1] for row in rows]
    connection.execute(_COMPLETE, (worker, jobs, attempts))
