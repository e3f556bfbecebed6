"""How many jobs there are while operators read."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "BacklogSizes"]


@dataclass(frozen=True, slots=True)
class BacklogSizes:
    """Jobs that wait, and jobs that have ended well or not."""

    waiting: int
    finished: int
    dead: int


FULL = BacklogSizes(waiting=2_000_000, finished=5_000_000, dead=100_000)
QUICK = BacklogSizes(waiting=2_000, finished=2_000, dead=200)
