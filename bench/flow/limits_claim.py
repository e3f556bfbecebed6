"""Claim + complete of 100 with and without a wide limit: the cost in the engine alone.

Three databases take turns: no limit, a concurrency far above the load, a rate far above the load.
Workers lose less, because they do more than call these two functions: see `limits_wide`.
"""

from contextlib import ExitStack
from functools import partial

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE, fill_limited
from bench.place import Place
from bench.sides import FunctionSide, Side
from bench.sizes import Sizes
from bench.turns import play

__all__ = ["WIDE", "run"]

# The limit of each side, by its name.
WIDE = {
    "none": None,
    "slots": {"concurrency": 100_000},
    "rate": {"requests_per_minute": 1_000_000_000},
}
TEXTS = {"none": "no limit", "slots": "concurrency far above", "rate": "rate far above"}


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure with two and with four processes."""
    figures = []
    for processes in (2, 4):
        with ExitStack() as stack:
            dsns = [stack.enter_context(place.database(f"claim_{side}")) for side in WIDE]
            for dsn, parts in zip(dsns, WIDE.values(), strict=True):
                with fill.connect(dsn) as connection:
                    if parts is None:
                        fill.ready(connection, sizes.flow.backlog, queue=QUEUE)
                    else:
                        fill_limited(connection, sizes.flow.backlog, {"wide": parts})
                    fill.analyze(connection)
                    fill.checkpoint(connection)
            rounds = play(
                processes,
                partial(open_sides, dsns),
                rounds=sizes.flow.rounds,
                seconds=sizes.flow.turn_seconds,
            )
        for number, side in enumerate(WIDE):
            key = f"limits_claim_{side}_{processes}"
            text = f"{TEXTS[side]}, {processes} processes"
            figures.append(Figure(key, rounds.rate(number), text, "jobs/s"))
            if number:
                figures.append(Figure(f"{key}_ratio", rounds.ratio(number), "  over no limit"))
            if rounds.has_cpu:
                cpu = rounds.cpu(number) * 1e6
                figures.append(Figure(f"{key}_cpu", cpu, "  server processor time", "us/job"))
    return figures


def open_sides(dsns: list[str], number: int) -> list[Side]:
    """Open one side for each database, in the process with this number."""
    return [FunctionSide(dsn, f"worker-{number}", QUEUE) for dsn in dsns]
