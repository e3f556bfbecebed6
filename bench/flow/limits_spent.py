"""Speed of other jobs in a queue where 100,000 jobs wait behind a spent limit, over without them.

The two databases take turns. The limit is spent for the hour.
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
        rounds = play(
            PROCESSES,
            partial(open_sides, dsns),
            rounds=sizes.flow.rounds,
            seconds=sizes.flow.turn_seconds,
        )
    text = f"{sizes.flow.spent:,} wait for a spent limit"
    figures = [
        Figure("limits_spent_none", rounds.rate(0), "other work, none waiting", "jobs/s"),
        Figure("limits_spent_many", rounds.rate(1), f"other work, {text}", "jobs/s"),
        Figure("limits_spent_ratio", rounds.ratio(1), "  over none waiting", goal=0.95),
    ]
    if rounds.has_cpu:
        ratio = rounds.cpu(0) / rounds.cpu(1)
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
