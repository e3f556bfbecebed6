"""The phases of a run, and how long they last."""

from dataclasses import dataclass

__all__ = ["Phase", "plan"]

# At most, even in a longer run: the goal is about a transaction that writes for a minute.
_LONGEST_WRITING = 62.0


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the run. ``key`` is part of the names of its figures."""

    key: str
    name: str
    seconds: float


def plan(minutes: float) -> list[Phase]:
    """Divide the minutes of arrivals among the phases: half of them are under a held snapshot."""
    seconds = minutes * 60
    clean, held, writing = 0.15 * seconds, 0.5 * seconds, min(0.11 * seconds, _LONGEST_WRITING)
    rest = (seconds - clean - held - writing) / 2
    return [
        Phase("clean", "clean", clean),
        Phase("held", "held snapshot", held),
        Phase("writing", "open writing transaction", writing),
        Phase("filled", "long history, many scheduled", rest),
        Phase("after", "autovacuum as usual", rest),
    ]
