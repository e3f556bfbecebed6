"""Claim of 100 with few jobs waiting, with many, with a long history, and with both.

Claims from four databases take turns, so other load on the machine affects all of them. After each
claim, the batch is completed and as many jobs are added, so the depth stays the same.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import median, quantiles

import psycopg

from bench import fill
from bench.figures import Figure
from bench.internals import tables
from bench.place import Place
from bench.sides import BATCH, FunctionSide
from bench.sizes import Sizes

__all__ = ["run"]

QUEUE = "depth"
_WARM_UP = 10


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 1.3 for time and 1.1 for buffers."""
    # By name: jobs waiting and finished. The others are compared with the first, which is almost
    # empty: it has just enough to claim.
    depths = {
        "shallow": (sizes.shallow, 0),
        "deep": (sizes.deep, 0),
        "history": (sizes.shallow, sizes.history),
        "both": (sizes.deep, sizes.history),
    }
    with ExitStack() as stack:
        dsns = {name: stack.enter_context(place.database(name)) for name in depths}
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda name: _fill(dsns[name], *depths[name]), depths))
        sides = {name: FunctionSide(dsn, "worker", QUEUE) for name, dsn in dsns.items()}
        for side in sides.values():
            stack.callback(side.close)
        times = _times(sides, sizes.claims)
        buffers = _buffers(place, sides, sizes.buffer_claims)
    texts = {
        "shallow": f"{sizes.shallow:,} waiting",
        "deep": f"{sizes.deep:,} waiting",
        "history": f"{sizes.history:,} finished",
        "both": "as many waiting and finished",
    }
    return [
        *_figures(times, texts),
        *(
            Figure(f"claim_buffers_{name}", count, f"buffers per claim of 100, {name}", "pages")
            for name, count in buffers.items()
        ),
        _ratio(
            "claim_buffers_history_ratio",
            buffers["history"] / buffers["shallow"],
            "buffers, long history over none",
            1.1,
        ),
        Figure(
            "claim_buffers_deep_ratio",
            buffers["deep"] / buffers["shallow"],
            "buffers, many waiting over few",
        ),
    ]


def _figures(times: Mapping[str, Sequence[float]], texts: Mapping[str, str]) -> list[Figure]:
    p50 = {name: median(taken) for name, taken in times.items()}
    p95 = {name: quantiles(taken, n=20, method="inclusive")[-1] for name, taken in times.items()}
    p99 = {name: quantiles(taken, n=100, method="inclusive")[-1] for name, taken in times.items()}
    return [
        *(
            Figure(
                f"claim_p{percent}_{name}",
                found[name] * 1e6,
                f"claim of 100, p{percent}, {text}",
                "us",
            )
            for name, text in texts.items()
            for percent, found in ((95, p95), (99, p99))
        ),
        _ratio("claim_p95_deep_ratio", p95["deep"] / p95["shallow"], "p95, many over few", 1.3),
        _ratio("claim_p95_history_ratio", p95["history"] / p95["shallow"], "p95, history", 1.3),
        _ratio("claim_p99_both_ratio", p99["both"] / p99["shallow"], "p99, many and history", 1.3),
        *(
            Figure(f"claim_p50_{name}_ratio", p50[name] / p50["shallow"], f"p50, {name} over few")
            for name in ("deep", "history", "both")
        ),
    ]


def _ratio(key: str, value: float, text: str, goal: float) -> Figure:
    return Figure(key, value, text, goal=goal, better="at most")


def _fill(dsn: str, waiting: int, history: int) -> None:
    with fill.connect(dsn) as connection:
        # Autovacuum's reads would be counted as ours, so we vacuum below.
        tables.stop_autovacuum(connection)
        if history:
            tables.finished(connection, history, queue=QUEUE)
        fill.ready(connection, waiting, queue=QUEUE)
        fill.analyze(connection)
        fill.checkpoint(connection)


def _times(sides: dict[str, FunctionSide], claims: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in sides}
    for round_ in range(_WARM_UP + claims):
        for name, side in sides.items():
            begin = time.perf_counter()
            jobs, attempts = side.claim()
            taken = time.perf_counter() - begin
            _require_full(len(jobs))
            side.complete(jobs, attempts)
            fill.ready(side.connection, BATCH, queue=QUEUE)
            if round_ >= _WARM_UP:
                times[name].append(taken)
    return times


def _buffers(place: Place, sides: dict[str, FunctionSide], claims: int) -> dict[str, float]:
    """Return the pages that a claim touches, cached or not, from the server's statistics."""
    buffers = {}
    with psycopg.connect(place.dsn, autocommit=True) as observer:
        for name, side in sides.items():
            database = side.connection.info.dbname
            before = _touched(observer, side, database)
            for _ in range(claims):
                jobs, _attempts = side.claim()
                _require_full(len(jobs))
            buffers[name] = (_touched(observer, side, database) - before) / claims
    return buffers


def _touched(observer: psycopg.Connection, side: FunctionSide, database: str) -> int:
    side.connection.execute("select pg_stat_force_next_flush()")
    row = observer.execute(
        "select blks_hit + blks_read from pg_stat_database where datname = %s", (database,)
    ).fetchone()
    if row is None:
        raise RuntimeError(f"There are no statistics for {database}")
    return int(row[0])


def _require_full(jobs: int) -> None:
    if jobs != BATCH:
        raise RuntimeError(f"A claim returned {jobs} jobs instead of {BATCH}")
