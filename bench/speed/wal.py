"""Bytes of the log per job from enqueue to finished, in each version, by payload and with keys.

The versions take turns, since the server counts for all databases.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

import psycopg

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE, TASK, set_limit
from bench.flow.limits_keys import KINDS, LIMIT, live, written
from bench.measures.wal import PAYLOADS, Life
from bench.place import Place
from bench.sides import FunctionSide
from bench.sizes import Sizes
from bench.speed.pairs import Both, compare, in_order, versions

__all__ = ["run"]

_MOST = 1.02
_PASSES = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal: at most 1.02."""
    figures = []
    for (name, (size, batch)), jobs in zip(PAYLOADS.items(), sizes.wal_jobs, strict=True):
        with ExitStack() as stack:
            passes: dict[str, Callable[[], float]] = {}
            for of, its in versions(place).items():
                dsn = stack.enter_context(its.database(f"wal_{name}"))
                life = stack.enter_context(Life(dsn, size, batch))
                life.warm_up(jobs)
                passes[of] = partial(_bytes, life, jobs)
            figures += _report(f"wal_{name}", f"log per job, payload {name}", _in_turns(passes))
    for kind in ("slots", "rate"):
        with ExitStack() as stack:
            passes = {}
            for of, its in versions(place).items():
                dsn = stack.enter_context(its.database(f"wal_{kind}"))
                passes[of] = _keyed(stack, dsn, kind, sizes)
            text = f"log per job, {KINDS[kind][0]}"
            figures += _report(f"wal_keys_{kind}", text, _in_turns(passes))
    return figures


def _bytes(life: Life, jobs: int) -> float:
    return life.measure(jobs)[0]


def _keyed(stack: ExitStack, dsn: str, kind: str, sizes: Sizes) -> Callable[[], float]:
    """Prepare a database for jobs of many keys with limits; return the measure of a pass."""
    connection = stack.enter_context(fill.connect(dsn))
    side = FunctionSide(dsn, "worker", QUEUE)
    stack.callback(side.close)
    set_limit(connection, LIMIT, **(KINDS[kind][1] or {}))
    connection.execute(
        "select trunkline.register_task(p_task => %s, p_limits => %s)", (TASK, [LIMIT])
    )
    fill.checkpoint(connection)
    jobs, keys = sizes.flow.log_jobs, sizes.flow.keys
    live(connection, side, jobs // 5, keys)
    return partial(_pass, connection, side, jobs, keys)


def _pass(connection: psycopg.Connection, side: FunctionSide, jobs: int, keys: int) -> float:
    begin = written(connection)
    live(connection, side, jobs, keys)
    return (written(connection) - begin) / jobs


def _in_turns(passes: dict[str, Callable[[], float]]) -> Both:
    values: dict[str, list[float]] = {of: [] for of in passes}
    for number in range(_PASSES):
        for of in in_order(list(passes), number):
            values[of].append(passes[of]())
    return values


def _report(key: str, text: str, found: Both) -> list[Figure]:
    return compare(key, text, found, unit="bytes", goal=_MOST, better="at most")
