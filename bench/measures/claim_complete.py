"""Claim + complete at batch 100 on two connections: the functions against plain SQL.

Both sides work on the same tables, each in its own queue, in turns of a quarter second, so other
load on the machine affects both. A repetition is a few turns of each.
"""

from functools import partial
from math import isnan
from statistics import median

from bench import fill
from bench.figures import Figure
from bench.place import Place
from bench.sides import FunctionSide, PlainSide, Side
from bench.sizes import Sizes
from bench.turns import in_turns

__all__ = ["run"]

PROCESSES = 2

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
        done = in_turns(PROCESSES, partial(_open, dsn), turns=turns, seconds=sizes.slice_seconds)
    # A process stops early when the backlog is used up; only whole repetitions count.
    turns_done = done[_WARM_UP:]
    length = 2 * sizes.slices
    repetitions = [
        turns_done[at : at + length] for at in range(0, len(turns_done) - length + 1, length)
    ]
    if not repetitions:
        raise RuntimeError("The machine is too fast for Sizes.backlog")
    functions = [median(turn.rate for turn in turns[0::2]) for turns in repetitions]
    plain = [median(turn.rate for turn in turns[1::2]) for turns in repetitions]
    # Turn by turn, because other load rarely starts or ends between two turns.
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
                "processor time, plain over functions",
            ),
        ]
    return figures


def _open(dsn: str, number: int) -> list[Side]:
    return [
        FunctionSide(dsn, f"functions-{number}", "functions"),
        PlainSide(dsn, f"plain-{number}", "plain"),
    ]
