"""Claim + complete of 100 with the functions of each version: no limit, and wide limits."""

from contextlib import ExitStack
from functools import partial

from bench import fill
from bench.figures import Figure
from bench.flow.limited import QUEUE, fill_limited
from bench.flow.limits_claim import TEXTS, WIDE, open_sides
from bench.place import Place
from bench.sizes import Sizes
from bench.speed.pairs import BEFORE, NOW, compare, processor_time, versions
from bench.turns import play

__all__ = ["run"]

PROCESSES = 2
# The goal for claims without a limit; those for limits are set for whole workers.
_GOAL = 0.97


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goal 0.97 without a limit."""
    figures = []
    for kind, parts in WIDE.items():
        with ExitStack() as stack:
            dsns = []
            for its in versions(place).values():
                dsns.append(stack.enter_context(its.database(f"claim_{kind}")))
                with fill.connect(dsns[-1]) as connection:
                    if parts is None:
                        fill.ready(connection, sizes.flow.backlog, queue=QUEUE)
                    else:
                        fill_limited(connection, sizes.flow.backlog, {"wide": parts})
                    fill.analyze(connection)
                    fill.checkpoint(connection)
            rounds = play(
                PROCESSES,
                partial(open_sides, dsns),
                rounds=sizes.flow.rounds,
                seconds=sizes.flow.turn_seconds,
            )
        key = "claim_complete" if parts is None else f"claim_complete_{kind}"
        goal = _GOAL if parts is None else None
        rates = {
            of: [turns[number].rate for turns in rounds.rounds]
            for number, of in enumerate((BEFORE, NOW))
        }
        figures += compare(key, f"claim + complete, {TEXTS[kind]}", rates, goal=goal)
        if rounds.has_cpu:
            cpu = {
                of: [turns[number].cpu / turns[number].jobs for turns in rounds.rounds]
                for number, of in enumerate((BEFORE, NOW))
            }
            figures.append(processor_time(key, cpu))
    return figures
