"""How long ``claim_tasks`` of profile studio takes after a million finished tasks.

Orders of many users are open, each with a limit of ten running tasks. One worker claims five tasks
of any kind and completes them, so finished texts open PDFs and recordings while it is measured.
"""

import time
from statistics import median, quantiles
from uuid import uuid4

import psycopg
from psycopg.types.json import Jsonb

from bench import fill
from bench.figures import Figure
from bench.internals import tables
from bench.place import Place
from bench.sizes import Sizes
from trunkline import profiles
from trunkline.profiles import installer

__all__ = ["run"]

# Milliseconds.
_GOAL = 20.0
_WARM_UP = 10
_BATCH = 5
_PARAMS = {
    "person1": {"name": "Ann", "born": "1984-05-17"},
    "person2": {"name": "Bob", "born": "1981-11-02"},
    "systems": ["western"],
}
_START = "select job_id from studio.start_job('nuclear_v2', %s, null, %s)"
_CLAIM = "select id from studio.claim_tasks('worker', %s)"
_COMPLETE = "select studio.complete_task(%s, 'worker', '{}')"


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: 20 ms at the 95th percentile."""
    amounts = sizes.studio
    with place.database("studio") as dsn:
        installer.install(dsn, profiles.get("studio"))
        with fill.connect(dsn) as connection:
            tables.finished(connection, amounts.finished, queue="studio", task="text_generation")
            for _ in range(amounts.orders):
                connection.execute(_START, (Jsonb(_PARAMS), uuid4()))
            fill.analyze(connection)
            fill.checkpoint(connection)
            times = _times(connection, amounts.claims)
    cuts = quantiles(times, n=100, method="inclusive")
    text = f"claim_tasks of {_BATCH}, {amounts.finished:,} finished"
    return [
        Figure("studio_claim_p50", median(times), f"{text}, median", "ms"),
        Figure("studio_claim_p95", cuts[94], "  p95", "ms", goal=_GOAL, better="at most"),
        Figure("studio_claim_p99", cuts[98], "  p99", "ms"),
    ]


def _times(connection: psycopg.Connection, claims: int) -> list[float]:
    times = []
    for turn in range(_WARM_UP + claims):
        begin = time.perf_counter()
        claimed = connection.execute(_CLAIM, (_BATCH,)).fetchall()
        took = time.perf_counter() - begin
        if len(claimed) != _BATCH:
            raise RuntimeError(f"A claim returned {len(claimed)} tasks instead of {_BATCH}")
        for (task,) in claimed:
            connection.execute(_COMPLETE, (task,))
        if turn >= _WARM_UP:
            times.append(1e3 * took)
    return times
