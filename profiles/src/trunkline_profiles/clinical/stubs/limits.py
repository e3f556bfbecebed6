"""A provider's limits for one model, and the exact account of the requests.

A provider counts all arriving requests. So this account verifies every promise about limits: it
checks all windows, not only those that begin on a full minute.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final

__all__ = ["HOUR", "MINUTE", "Account", "Call", "Model", "Room", "Verdict", "Window"]

MINUTE: Final = 60.0
HOUR: Final = 3600.0
# Retry-After for too many concurrent calls, because the end of a call cannot be predicted.
_BUSY_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Model:
    """The settings of one model; None means no limit."""

    requests_per_minute: int | None = None
    requests_per_hour: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_hour: int | None = None
    concurrency: int | None = None
    # Seconds, or the bounds of a uniform distribution.
    latency: float | tuple[float, float] = 0.0
    # Tokens of a call, or the bounds of a uniform distribution; None: counted from the texts.
    tokens: int | tuple[int, int] | None = None
    # Whether Retry-After is a date instead of seconds.
    date: bool = False
    # Whether calls over the limit are refused; otherwise they are only counted.
    enforced: bool = True


@dataclass(slots=True)
class Call:
    """One call; ``ended`` is when its response was ready to be sent."""

    at: float
    tokens: int
    # The number of concurrent calls, including this one.
    at_once: int
    # Empty if it was served; otherwise the reason.
    refused: str = ""
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a call may be served; if not, the reason and for how long."""

    call: Call
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """What is left in the minute, and the seconds until there is more."""

    requests_left: int | None
    tokens_left: int | None
    reset: float


@dataclass(frozen=True, slots=True)
class Account:
    """The account of one model. Arrivals count whether they were served or refused."""

    calls: int
    served: int
    refused: int
    refused_on_demand: int
    tokens: int
    most_calls_minute: int
    most_calls_hour: int
    most_tokens_minute: int
    most_tokens_hour: int
    most_at_once: int
    # By how much each limit was exceeded; empty if none was.
    over: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class _Recent:
    """Calls that were served within one window, and their sums."""

    def __init__(self, name: str, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self.calls: deque[Call] = deque()
        self.tokens = 0

    def add(self, call: Call) -> None:
        self.calls.append(call)
        self.tokens += call.tokens

    def forget(self, now: float) -> None:
        """Remove calls that are older than the window."""
        while self.calls and self.calls[0].at <= now - self.seconds:
            self.tokens -= self.calls.popleft().tokens

    def refusal(self, model: Model, call: Call) -> tuple[str, float] | None:
        """The limit that the call would exceed, and for how many seconds."""
        for unit, used, needed in (
            ("requests", len(self.calls), 1),
            ("tokens", self.tokens, call.tokens),
        ):
            name = f"{unit}_per_{self.name}"
            limit: int | None = getattr(model, name)
            if limit is not None and used + needed > limit:
                return name, self._until_free(unit, used + needed - limit, call.at)
        return None

    def _until_free(self, unit: str, excess: int, now: float) -> float:
        """Seconds until enough has left the window; a call that never fits waits for all of it."""
        for call in self.calls:
            excess -= 1 if unit == "requests" else call.tokens
            if excess <= 0:
                return call.at + self.seconds - now
        return self.seconds


class Window:
    """All calls of one model, for many threads."""

    def __init__(self, model: Model, clock: Callable[[], float]) -> None:
        self.model = model
        self._clock = clock
        self._lock = threading.Lock()
        self._calls: list[Call] = []
        self._minute = _Recent("minute", MINUTE)
        self._hour = _Recent("hour", HOUR)
        self._active = 0

    def arrive(self, tokens: int, *, demanded: bool = False) -> Verdict:
        """Record a call and decide; one with ``demanded`` is refused even if there is room."""
        with self._lock:
            now = self._clock()
            call = Call(now, tokens, self._active + 1)
            self._calls.append(call)
            for recent in (self._minute, self._hour):
                recent.forget(now)
            refusal = ("demanded", _BUSY_SECONDS) if demanded else self._refusal(call)
            if refusal is not None:
                call.refused, wait = refusal
                call.ended = now
                return Verdict(call, wait)
            self._active += 1
            for recent in (self._minute, self._hour):
                recent.add(call)
            return Verdict(call)

    def end(self, call: Call) -> None:
        """Record that the response of a served call is ready."""
        with self._lock:
            call.ended = self._clock()
            self._active -= 1

    def room(self) -> Room:
        """The values for the headers."""
        with self._lock:
            now = self._clock()
            recent = self._minute
            recent.forget(now)
            calls, tokens = self.model.requests_per_minute, self.model.tokens_per_minute
            return Room(
                requests_left=None if calls is None else max(calls - len(recent.calls), 0),
                tokens_left=None if tokens is None else max(tokens - recent.tokens, 0),
                reset=recent.calls[0].at + MINUTE - now if recent.calls else 0.0,
            )

    def calls(self) -> list[Call]:
        """All calls in the order of their arrival."""
        with self._lock:
            return list(self._calls)

    def under_way(self) -> int:
        """How many calls have no response yet."""
        with self._lock:
            return self._active

    def account(self) -> Account:
        """The exact account of all calls so far."""
        calls = self.calls()
        # Refused calls use no tokens.
        served = [call for call in calls if not call.refused]
        refused = [call.refused for call in calls if call.refused]
        most = {
            "requests_per_minute": _most(calls, MINUTE, lambda _: 1),
            "requests_per_hour": _most(calls, HOUR, lambda _: 1),
            "tokens_per_minute": _most(served, MINUTE, lambda call: call.tokens),
            "tokens_per_hour": _most(served, HOUR, lambda call: call.tokens),
            "concurrency": max((call.at_once for call in calls), default=0),
        }
        limits = {name: getattr(self.model, name) for name in most}
        return Account(
            calls=len(calls),
            served=len(served),
            refused=len(refused),
            refused_on_demand=refused.count("demanded"),
            tokens=sum(call.tokens for call in served),
            most_calls_minute=most["requests_per_minute"],
            most_calls_hour=most["requests_per_hour"],
            most_tokens_minute=most["tokens_per_minute"],
            most_tokens_hour=most["tokens_per_hour"],
            most_at_once=most["concurrency"],
            over={
                name: found - limits[name]
                for name, found in most.items()
                if limits[name] is not None and found > limits[name]
            },
        )

    def _refusal(self, call: Call) -> tuple[str, float] | None:
        model = self.model
        if not model.enforced:
            return None
        if model.concurrency is not None and call.at_once > model.concurrency:
            return "concurrency", _BUSY_SECONDS
        return self._hour.refusal(model, call) or self._minute.refusal(model, call)


def _most(calls: list[Call], window: float, size: Callable[[Call], int]) -> int:
    """The largest sum in any window; windows that end with a call are the fullest."""
    largest = inside = first = 0
    for call in calls:
        inside += size(call)
        while calls[first].at <= call.at - window:
            inside -= size(calls[first])
            first += 1
        largest = max(largest, inside)
    return largest
