"""Claim + complete at batch 100 on two connections: the functions against plain SQL.

Both sides work on the same tables, each in its own queue, in turns of half a second; so whatever
else the machine does falls on both. A repetition is a few turns of each.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median

from bench import fill
from bench.crew import run_together, wait_until
from bench.figures import Figure
from bench.place import Place
from bench.sides import FunctionSide, PlainSide, Side
from bench.sizes import Sizes

__all__ = ["run"]

PROCESSES = 2

# A pause between turns, so that a batch that runs over does not reach into the other's turn.
_GAP = 0.04
_WARM_UP = 2


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.85."""
    with place.database("claim") as dsn:
        with fill.connect(dsn) as connection:
            for queue in ("functions", "plain"):
                fill.ready(connection, sizes.backlog, queue=queue)
            fill.analyze(connection)
            fill.checkpoint(connection)
        turns = _WARM_UP + 2 * sizes.slices * sizes.repetitions
        answers = run_together(PROCESSES, _prepare, dsn, turns, sizes.slice_seconds)
    # Jobs per second of each turn, over all processes.
    rates = [sum(rate) for rate in zip(*answers, strict=True)][_WARM_UP:]
    length = 2 * sizes.slices
    repetitions = [rates[at : at + length] for at in range(0, len(rates), length)]
    functions = [median(repetition[0::2]) for repetition in repetitions]
    plain = [median(repetition[1::2]) for repetition in repetitions]
    ratio = median(one / other for one, other in zip(functions, plain, strict=True))
    return [
        Figure(
            "claim_complete_functions", median(functions), "claim + complete, functions", "jobs/s"
        ),
        Figure("claim_complete_plain", median(plain), "claim + complete, plain SQL", "jobs/s"),
        Figure("claim_complete_vs_raw", ratio, "functions over plain SQL", goal=0.85),
    ]


def _prepare(number: int, dsn: str, turns: int, seconds: float) -> Callable[[float], list[float]]:
    sides: list[Side] = [
        FunctionSide(dsn, f"functions-{number}", "functions"),
        PlainSide(dsn, f"plain-{number}", "plain"),
    ]
    return partial(_take_turns, sides, turns, seconds)


def _take_turns(sides: list[Side], turns: int, seconds: float, start: float) -> list[float]:
    rates = []
    for turn in range(turns):
        begin = start + turn * (seconds + _GAP)
        wait_until(begin)
        rates.append(_work(sides[turn % len(sides)], begin + seconds))
    return rates


def _work(side: Side, until: float) -> float:
    begin = time.monotonic()
    done = 0
    while (now := time.monotonic()) < until:
        jobs, attempts = side.claim()
        if not jobs:
            raise RuntimeError("The backlog is used up: the machine is faster than Sizes.backlog")
        done += side.complete(jobs, attempts)
    return done / (now - begin)
