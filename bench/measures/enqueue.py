"""Single enqueues on one connection, each in its own transaction; there is no goal."""

import time
from collections.abc import Callable
from statistics import median

from bench import fill
from bench.figures import Figure
from bench.internals import plain
from bench.place import TASK, Place
from bench.sizes import Sizes

__all__ = ["ENQUEUE", "run"]

ENQUEUE = """
select job_id, created, state, run_at
from trunkline.enqueue(p_task => %(task)b, p_payload => %(payload)s::jsonb)
"""
_WARM_UP = 10


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure, taking turns with a plain insert of one row."""
    with place.database("single") as dsn, fill.connect(dsn) as connection:
        fill.checkpoint(connection)
        cursor = connection.cursor(binary=True)
        arguments = {"task": TASK, "payload": '{"number": 1, "text": "twenty bytes of text"}'}
        times: dict[str, list[float]] = {"functions": [], "plain": []}
        calls: dict[str, Callable[[], object]] = {
            "functions": lambda: cursor.execute(ENQUEUE, arguments).fetchall(),
            "plain": lambda: cursor.execute(plain.INSERT_ONE, arguments).fetchall(),
        }
        for _ in range(_WARM_UP + sizes.single_calls):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - begin)
    middle = {name: median(taken[_WARM_UP:]) for name, taken in times.items()}
    return [
        Figure("enqueue_functions", 1 / middle["functions"], "single enqueue", "jobs/s"),
        Figure("enqueue_plain", 1 / middle["plain"], "single plain insert", "jobs/s"),
        Figure("enqueue_vs_raw", middle["plain"] / middle["functions"], "enqueue over plain"),
    ]
