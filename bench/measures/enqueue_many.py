"""enqueue_many and enqueue_batch of 1,000 jobs against the plain multi-row insert of the same rows.

One connection; the forms take turns, call by call. The document is created once, because writing
JSON costs the client the same on both sides.
"""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median

import psycopg

from bench import fill
from bench.figures import Figure
from bench.internals import plain
from bench.internals.tables import truncate_waiting
from bench.place import TASK, Place
from bench.sizes import Sizes

__all__ = ["BATCH", "JOBS", "MANY", "batch_arguments", "many_arguments", "run"]

JOBS = 1_000

MANY = "select job_id, created, state, run_at from trunkline.enqueue_many(%(jobs)s::jsonb)"
BATCH = """
select unnest(b.job_ids) from trunkline.enqueue_batch(%(task)s, %(payloads)s::jsonb) as b
"""
_WARM_UP = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.8."""
    with place.database("enqueue") as dsn, fill.connect(dsn) as connection:
        fill.checkpoint(connection)
        calls = _calls(connection)
        for _ in range(_WARM_UP):
            for call in calls.values():
                call()
        repetitions = []
        for _ in range(sizes.repetitions):
            truncate_waiting(connection)
            repetitions.append(_repetition(calls, sizes.enqueue_calls))
    ratio = median(times["json"] / times["functions"] for times in repetitions)
    unnest = median(times["unnest"] / times["functions"] for times in repetitions)
    batch = median(times["unnest"] / times["batch"] for times in repetitions)
    rate = {name: JOBS / median(times[name] for times in repetitions) for name in calls}
    return [
        Figure("enqueue_many_functions", rate["functions"], "enqueue_many of 1,000", "jobs/s"),
        Figure("enqueue_batch", rate["batch"], "enqueue_batch of 1,000", "jobs/s"),
        Figure("enqueue_many_plain", rate["json"], "plain insert of 1,000 from JSON", "jobs/s"),
        Figure(
            "enqueue_many_unnest", rate["unnest"], "plain insert of 1,000 from arrays", "jobs/s"
        ),
        Figure("enqueue_many_vs_raw", ratio, "enqueue_many over plain, same document", goal=0.8),
        Figure("enqueue_many_vs_unnest", unnest, "enqueue_many over plain, arrays"),
        Figure("enqueue_batch_vs_unnest", batch, "enqueue_batch over plain, arrays", goal=0.8),
    ]


def many_arguments() -> dict[str, object]:
    """The argument of ``MANY``."""
    return {"jobs": json.dumps([{"task": TASK, "payload": payload} for payload in _payloads()])}


def batch_arguments() -> dict[str, object]:
    """The arguments of ``BATCH``."""
    return {"task": TASK, "payloads": json.dumps(_payloads())}


def _payloads() -> list[dict[str, object]]:
    return [{"number": number, "text": "twenty bytes of text"} for number in range(JOBS)]


def _calls(connection: psycopg.Connection) -> dict[str, Callable[[], int]]:
    many = many_arguments()
    arrays = {"tasks": [TASK] * JOBS, "payloads": [json.dumps(payload) for payload in _payloads()]}
    cursor = connection.cursor(binary=True)

    def call(statement: str, arguments: Mapping[str, object]) -> int:
        return len(cursor.execute(statement, arguments).fetchall())

    return {
        "functions": partial(call, MANY, many),
        "batch": partial(call, BATCH, batch_arguments()),
        "json": partial(call, plain.INSERT_JSON, many),
        "unnest": partial(call, plain.INSERT_UNNEST, arrays),
    }


def _repetition(calls: dict[str, Callable[[], int]], count: int) -> dict[str, float]:
    """Call the forms in turns; return the median time of a call, by form."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(count):
        for name, call in calls.items():
            begin = time.perf_counter()
            if call() != JOBS:
                raise RuntimeError(f"The form {name} did not return every job")
            times[name].append(time.perf_counter() - begin)
    return {name: median(taken) for name, taken in times.items()}
