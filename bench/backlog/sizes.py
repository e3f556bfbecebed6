"""How many jobs there are while operators read."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "BacklogSizes"]


@dataclass(frozen=True, slots=True)
class BacklogSizes:
    """Jobs that wait, jobs that a lowered limit set aside, and jobs that have ended."""

    waiting: int
    set_aside: int
    finished: int
    dead: int


FULL = BacklogSizes(waiting=2_000_000, set_aside=100_000, finished=5_000_000, dead=100_000)
QUICK = BacklogSizes(waiting=2_000, set_aside=100, finished=2_000, dead=200)
