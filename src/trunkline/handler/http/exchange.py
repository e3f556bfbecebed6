"""The time and the bytes of one exchange with a provider."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, Self

import httpcore2

__all__ = ["Exchange", "of_timeout", "total_timeout"]

# A total timeout covers connecting, headers and body.
DEFAULT_TIMEOUT: Final = 10.0
# An answer is kept in memory. This bounds its size on the wire, and its decompressed size.
LARGEST_ANSWER: Final = 64 * 2**20
# Bounds everything before the body: interim answers (1xx) and headers.
_LARGEST_HEAD: Final = 65_536
_TIMEOUTS: Final[Mapping[str, type[Exception]]] = {
    "connect": httpcore2.ConnectTimeout,
    "read": httpcore2.ReadTimeout,
    "write": httpcore2.WriteTimeout,
}


class Exchange(float):
    """An object in place of the timeouts of one request.

    httpcore2 passes a timeout unread to the network stream. If it is an object instead of a number,
    the stream knows which exchange it works for, in any task or thread. It can then count the bytes
    of the exchange and apply one deadline to all steps.
    """

    def __new__(cls, timeout: Mapping[str, float | None], spent: float) -> Self:  # noqa: ARG004
        """Create the number, for a library that reads the timeout after all."""
        return super().__new__(cls, total_timeout(timeout) or float("inf"))

    def __init__(self, timeout: Mapping[str, float | None], spent: float) -> None:
        self._timeout = timeout
        # None if the caller set no bound.
        self.total = total_timeout(timeout)
        self._begin = time.monotonic() - spent
        self.received = 0
        # Whether a new connection was opened; otherwise a kept one is used.
        self.connected = False
        # Whether the current step may use all of the remaining total.
        self.last = False
        # Whether the final status and its headers are complete.
        self.answered = False

    @property
    def elapsed(self) -> float:
        """Seconds since the start, including earlier redirects."""
        return time.monotonic() - self._begin

    def left(self, step: str) -> float | None:
        """Return how long a step may take; raise its timeout if no time is left."""
        bound = self._timeout.get(step)
        if self.total is not None:
            remaining = self.total - self.elapsed
            self.last = bound is None or remaining <= bound
            bound = remaining if self.last else bound
        if bound is not None and bound <= 0:
            raise _TIMEOUTS[step]
        return bound

    def check_size(self) -> None:
        """Raise if the answer has reached its largest size."""
        if not self.answered and self.received >= _LARGEST_HEAD:
            raise httpcore2.RemoteProtocolError("its headers are too long")
        if self.received >= LARGEST_ANSWER + _LARGEST_HEAD:
            raise httpcore2.RemoteProtocolError("its body is too large")


def of_timeout(timeout: float | None) -> Exchange:
    """Return the exchange that was passed in place of a timeout."""
    if not isinstance(timeout, Exchange):
        raise httpcore2.UnsupportedProtocol("only HTTP requests can be sent")
    return timeout


def total_timeout(timeout: Mapping[str, Any]) -> float | None:
    """Return the bound of a whole call: that of its longest step, or None if a step has none."""
    steps = [timeout.get(step) for step in _TIMEOUTS]
    bounds = [step for step in steps if step is not None]
    return max(bounds) if len(bounds) == len(steps) else None
