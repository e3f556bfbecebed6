"""Turns: processes work for one side after the other, so other load affects all sides.

A round is one turn of each side. Ratios are taken within rounds, because other load rarely begins
or ends between two turns of a quarter second.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from statistics import median

from bench.crew import run_together, wait_until
from bench.sides import Side, cpu_seconds

__all__ = ["Rounds", "Turn", "in_turns", "play"]

# A pause between turns, so that a late batch does not overlap the next turn.
_GAP = 0.04
_WARM_UP = 1
# How long after its turn a process still tries to get its first batch.
_PATIENCE = 2.0


@dataclass(frozen=True, slots=True)
class Turn:
    """The work of one turn."""

    jobs: int
    rate: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Rounds:
    """The measured rounds, each with one turn of every side."""

    rounds: Sequence[Sequence[Turn]]

    def rate(self, side: int) -> float:
        """Jobs per second of a side."""
        return median(turns[side].rate for turns in self.rounds)

    def ratio(self, side: int, over: int = 0) -> float:
        """How fast a side is, over another."""
        return median(turns[side].rate / turns[over].rate for turns in self.rounds)

    def cpu(self, side: int) -> float:
        """Processor time of the server per job, in seconds; NaN if it runs elsewhere."""
        jobs = sum(turns[side].jobs for turns in self.rounds)
        return sum(turns[side].cpu for turns in self.rounds) / jobs

    @property
    def has_cpu(self) -> bool:
        """Whether processor time is known."""
        return not isnan(self.rounds[0][0].cpu)


def play(
    processes: int, open_sides: Callable[[int], list[Side]], *, rounds: int, seconds: float
) -> Rounds:
    """Let processes take turns; the first round is a warm-up.

    ``open_sides`` is called in each process with its number. An empty claim is repeated, because
    claims skip a limit that another process has locked.
    """
    sides = len(open_sides(0))
    turns = in_turns(
        processes, open_sides, turns=(_WARM_UP + rounds) * sides, seconds=seconds, patient=True
    )
    whole = [turns[at : at + sides] for at in range(0, len(turns) - sides + 1, sides)]
    if len(whole) <= _WARM_UP:
        raise RuntimeError("The machine is too fast for the backlog of this measure")
    return Rounds(whole[_WARM_UP:])


def in_turns(
    processes: int,
    open_sides: Callable[[int], list[Side]],
    *,
    turns: int,
    seconds: float,
    patient: bool = False,
) -> list[Turn]:
    """Let processes take turns, and add up their work per turn.

    All end early when one of them finds no job.
    """
    answers = run_together(processes, _prepare, open_sides, turns, seconds, patient)
    return [_together(turn) for turn in zip(*answers, strict=False)]


def _together(turns: Sequence[Turn]) -> Turn:
    return Turn(
        sum(turn.jobs for turn in turns),
        sum(turn.rate for turn in turns),
        sum(turn.cpu for turn in turns),
    )


def _prepare(
    number: int,
    open_sides: Callable[[int], list[Side]],
    turns: int,
    seconds: float,
    patient: bool,
) -> Callable[[float], list[Turn]]:
    return partial(_take_turns, open_sides(number), turns, seconds, patient)


def _take_turns(
    sides: list[Side], turns: int, seconds: float, patient: bool, start: float
) -> list[Turn]:
    done = []
    for turn in range(turns):
        begin = start + turn * (seconds + _GAP)
        wait_until(begin)
        worked = _work(sides[turn % len(sides)], begin + seconds, patient)
        if worked is None:
            break
        done.append(worked)
    return done


def _work(side: Side, until: float, patient: bool) -> Turn | None:
    """Work until then; None if the backlog is used up."""
    cpu = cpu_seconds(side.connection)
    begin = time.monotonic()
    done = 0
    # At least one batch, even if the turn before it ended late.
    while True:
        jobs, attempts = side.claim()
        if jobs:
            done += side.complete(jobs, attempts)
        elif not patient:
            return None
        now = time.monotonic()
        # Other processes may have locked the limit during all of a short turn.
        if now >= until and (done or now >= until + _PATIENCE):
            break
    if not done:
        return None
    return Turn(done, done / (now - begin), cpu_seconds(side.connection) - cpu)
