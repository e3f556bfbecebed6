"""Other work with a hundred thousand jobs waiting behind a spent limit, over without them.

In the same queue, in turns by databases. The limit is spent for the hour.
"""

from contextlib import ExitStack
from functools import partial

import psycopg

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE, fill_limited
from bench.flow.limits_claim import open_sides
from bench.place import Place
from bench.sides import FunctionSide
from bench.sizes import Sizes
from bench.turns import play

__all__ = ["run"]

PROCESSES = 2
SPENT = {"requests_per_hour": 1}


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.95."""
    with ExitStack() as stack:
        dsns = [stack.enter_context(place.database(f"spent_{kind}")) for kind in ("none", "many")]
        for dsn in dsns:
            with fill.connect(dsn) as connection:
                if dsn is dsns[1]:
                    _spend(connection, dsn, sizes.flow.spent)
                fill.ready(connection, sizes.flow.backlog, queue=QUEUE)
                fill.analyze(connection)
                fill.checkpoint(connection)
        found = play(
            PROCESSES,
            partial(open_sides, dsns),
            rounds=sizes.flow.rounds,
            seconds=sizes.flow.turn_seconds,
        )
    text = f"{sizes.flow.spent:,} wait for a spent limit"
    figures = [
        Figure("limits_spent_none", found.rate(0), "other work, nobody waits", "jobs/s"),
        Figure("limits_spent_many", found.rate(1), f"other work, {text}", "jobs/s"),
        Figure("limits_spent_ratio", found.ratio(1), "  over nobody", goal=0.95),
    ]
    if found.has_cpu:
        ratio = found.cpu(0) / found.cpu(1)
        figures.append(Figure("limits_spent_cpu_ratio", ratio, "  the same by processor time"))
    return figures


def _spend(connection: psycopg.Connection, dsn: str, jobs: int) -> None:
    fill_limited(connection, jobs + 1, {"spent": SPENT})
    side = FunctionSide(dsn, "spender", QUEUE)
    taken, attempts = side.claim()
    side.complete(taken, attempts)
    again, _ = side.claim()
    side.close()
    if len(taken) != 1 or again:
        raise RuntimeError(f"A limit of one request gave {len(taken)}, then {len(again)}")
