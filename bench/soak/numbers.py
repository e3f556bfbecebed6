"""The ranges of job numbers: each place on the slate is for one job."""

from dataclasses import dataclass

__all__ = ["Numbers"]

# More jobs a second than any machine sustains; the slate is sparse, so unused room costs nothing.
_FASTEST = 150_000
_PER_SECOND = 2
_SPARE = 600


@dataclass(frozen=True, slots=True)
class Numbers:
    """Special jobs first, then scheduled ones, then all that arrive, open-ended."""

    specials: int
    scheduled: int
    end: int

    @classmethod
    def plan(cls, seconds: float, scheduled: int) -> "Numbers":
        """Room for a run of this many seconds."""
        specials = int(seconds + _SPARE) * _PER_SECOND
        arriving = int((seconds + _SPARE) * _FASTEST)
        return cls(specials, scheduled, specials + scheduled + arriving)

    @property
    def first_arriving(self) -> int:
        return self.specials + self.scheduled
