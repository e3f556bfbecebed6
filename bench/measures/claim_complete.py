"""Claim + complete at batch 100 on two connections: the functions against plain SQL.

Both sides work on the same tables, each in its own queue, in turns of a quarter second; so whatever
else the machine does falls on both. A repetition is a few turns of each.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from statistics import median

from bench import fill
from bench.crew import run_together, wait_until
from bench.figures import Figure
from bench.place import Place
from bench.sides import FunctionSide, PlainSide, Side, cpu_seconds
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
    # A process stops early when the backlog is used up; only whole repetitions count.
    turns_done = [_together(answer) for answer in zip(*answers, strict=False)][_WARM_UP:]
    length = 2 * sizes.slices
    repetitions = [
        turns_done[at : at + length] for at in range(0, len(turns_done) - length + 1, length)
    ]
    if not repetitions:
        raise RuntimeError("The machine is too fast for Sizes.backlog")
    functions = [median(turn.rate for turn in turns[0::2]) for turns in repetitions]
    plain = [median(turn.rate for turn in turns[1::2]) for turns in repetitions]
    # Turn by turn: what a neighbour does rarely starts or ends between two of them.
    ratio = median(
        median(one.rate / other.rate for one, other in zip(turns[0::2], turns[1::2], strict=True))
        for turns in repetitions
    )
    cpu = [
        sum(t.cpu for t in ts) / sum(t.jobs for t in ts)
        for ts in (turns_done[0::2], turns_done[1::2])
    ]
    figures = [
        Figure("claim_complete_repetitions", len(repetitions), "repetitions", "times"),
        Figure(
            "claim_complete_functions", median(functions), "claim + complete, functions", "jobs/s"
        ),
        Figure("claim_complete_plain", median(plain), "claim + complete, plain SQL", "jobs/s"),
        Figure("claim_complete_vs_raw", ratio, "functions over plain SQL", goal=0.85),
    ]
    if not isnan(cpu[0]):
        figures += [
            Figure(
                "claim_complete_cpu_functions",
                cpu[0] * 1e6,
                "server processor time, functions",
                "us/job",
            ),
            Figure(
                "claim_complete_cpu_plain",
                cpu[1] * 1e6,
                "server processor time, plain SQL",
                "us/job",
            ),
            Figure(
                "claim_complete_cpu_vs_raw",
                cpu[1] / cpu[0],
                "the same as a ratio, plain over functions",
            ),
        ]
    return figures


@dataclass(frozen=True, slots=True)
class _Turn:
    jobs: int
    rate: float
    cpu: float


def _together(turns: Sequence[_Turn]) -> _Turn:
    """Add up what the processes did in the same turn."""
    return _Turn(
        sum(turn.jobs for turn in turns),
        sum(turn.rate for turn in turns),
        sum(turn.cpu for turn in turns),
    )


def _prepare(number: int, dsn: str, turns: int, seconds: float) -> Callable[[float], list[_Turn]]:
    sides: list[Side] = [
        FunctionSide(dsn, f"functions-{number}", "functions"),
        PlainSide(dsn, f"plain-{number}", "plain"),
    ]
    return partial(_take_turns, sides, turns, seconds)


def _take_turns(sides: list[Side], turns: int, seconds: float, start: float) -> list[_Turn]:
    done = []
    for turn in range(turns):
        begin = start + turn * (seconds + _GAP)
        wait_until(begin)
        worked = _work(sides[turn % len(sides)], begin + seconds)
        if worked is None:
            break
        done.append(worked)
    return done


def _work(side: Side, until: float) -> _Turn | None:
    """Work until then; nothing if the backlog does not last."""
    cpu = cpu_seconds(side.connection)
    begin = time.monotonic()
    done = 0
    # At least one batch, however late the turn before it ended.
    while True:
        jobs, attempts = side.claim()
        if not jobs:
            return None
        done += side.complete(jobs, attempts)
        if (now := time.monotonic()) >= until:
            break
    return _Turn(done, done / (now - begin), cpu_seconds(side.connection) - cpu)
