"""How long a handler waits for room in a limit."""

from __future__ import annotations

from typing import Final, NamedTuple

from trunkline.model import Duration, seconds

__all__ = ["Patience", "Wait", "patience"]

Wait = bool | Duration | None

# The bound without `wait`: long enough for a window of one minute to pass.
_DEFAULT_WAIT: Final = 90.0
# Reasons that may last for days or until an operator acts: a handler must not keep a runner then.
_LASTING: Final = frozenset({"quota", "maintenance", "disabled"})


class Patience(NamedTuple):
    """How long to wait, and for what."""

    # In seconds; None means without a bound.
    bound: float | None
    # Whether the handler passed `wait`, and so also waits for lasting reasons.
    explicit: bool

    def ends(self, reason: str | None, free_in: float | None, waited: float) -> bool:
        """Whether to stop waiting because there will be no room in time."""
        if reason in _LASTING and not self.explicit:
            return True
        if self.bound is None:
            return False
        remaining = self.bound - waited
        return remaining <= 0 or (free_in or 0.0) > remaining

    def pause(self, pause: float, waited: float) -> float:
        """Shorten a pause to the remaining part of the bound."""
        return pause if self.bound is None else min(pause, self.bound - waited)


def patience(wait: Wait) -> Patience:
    """Return the patience for the argument `wait`."""
    if wait is None:
        return Patience(_DEFAULT_WAIT, explicit=False)
    if isinstance(wait, bool):
        return Patience(None if wait else 0.0, explicit=True)
    return Patience(seconds(wait), explicit=True)
