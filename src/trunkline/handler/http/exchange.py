"""The time and the bytes of one exchange with a provider."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Self

import httpcore2

__all__ = ["Exchange", "of_timeout", "total_timeout"]

# A total timeout covers connecting, headers and body.
DEFAULT_TIMEOUT: Final = 10.0
# An answer is kept in memory: its size on the wire and, apart from that, decompressed.
LARGEST_ANSWER: Final = 64 * 2**20
# Everything before the body: interim answers (1xx) and headers.
_LARGEST_HEAD: Final = 65_536
_TIMEOUTS: Final[Mapping[str, type[Exception]]] = {
    "connect": httpcore2.ConnectTimeout,
    "read": httpcore2.ReadTimeout,
    "write": httpcore2.WriteTimeout,
}


class Exchange(float):
    """Takes the place of the timeouts of one request.

    httpcore2 passes a timeout unread to the network stream. With an object instead of a number the
    stream knows which exchange it works for, whatever task or thread reads the answer, and can
    count its bytes and apply one deadline to all steps.
    """

    def __new__(cls, timeout: Mapping[str, float | None], spent: float) -> Self:  # noqa: ARG004
        """Make the number that a library would see that reads it after all."""
        return super().__new__(cls, total_timeout(timeout) or float("inf"))

    def __init__(self, timeout: Mapping[str, float | None], spent: float) -> None:
        self._timeout = timeout
        # None: the caller asked for no bound.
        self.total = total_timeout(timeout)
        self._begin = time.monotonic() - spent
        self.received = 0
        # Whether a new connection was opened for it; else it uses a kept one.
        self.connected = False
        # Whether the present step has all that is left of the total.
        self.last = False
        # Whether the final status and its headers are complete.
        self.answered = False

    @property
    def elapsed(self) -> float:
        """Seconds since it began, with those of the redirects before it."""
        return time.monotonic() - self._begin

    def left(self, step: str) -> float | None:
        """Return how long a step may take; raises its timeout when no time is left."""
        bound = self._timeout.get(step)
        if self.total is not None:
            left = self.total - self.elapsed
            self.last = bound is None or left <= bound
            bound = left if self.last else bound
        if bound is not None and bound <= 0:
            raise _TIMEOUTS[step]
        return bound

    def check_size(self) -> None:
        """Refuse to read more of an answer than one may have."""
        if not self.answered and self.received >= _LARGEST_HEAD:
            raise httpcore2.RemoteProtocolError("its headers are too long")
        if self.received >= LARGEST_ANSWER + _LARGEST_HEAD:
            raise httpcore2.RemoteProtocolError("its body is too large")


def of_timeout(timeout: float | None) -> Exchange:
    """Return the exchange that was passed in place of a timeout."""
    if not isinstance(timeout, Exchange):
        raise httpcore2.UnsupportedProtocol("only requests of HTTP can be sent")
    return timeout


def total_timeout(timeout: Mapping[str, Any]) -> float | None:
    """Return the bound of a whole call: the longest of its steps, None if one has no bound."""
    steps = [timeout.get(step) for step in _TIMEOUTS]
    bounds = [step for step in steps if step is not None]
    return max(bounds) if len(bounds) == len(steps) else None
