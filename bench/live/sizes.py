"""Sizes of the measures of live events."""

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "LiveSizes"]


@dataclass(frozen=True, slots=True)
class LiveSizes:
    """The sizes of one run."""

    # latency: open streams, each of another job, and changes per second for so many seconds.
    streams: int
    events_per_second: int
    seconds: float
    # idle: open streams of one process.
    idle: int


FULL = LiveSizes(streams=1_000, events_per_second=200, seconds=10.0, idle=5_000)
QUICK = LiveSizes(streams=20, events_per_second=40, seconds=0.5, idle=50)
