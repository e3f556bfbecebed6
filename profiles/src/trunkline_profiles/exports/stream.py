"""Server-Sent Events of an export or a batch: which event follows from which state.

A follower knows neither HTTP nor the database. It is given the state whenever it was read, and
returns what the client is sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["CHECK_SECONDS", "HEADERS", "Event", "Follower", "comment", "is_final"]

# Seconds between two looks at the state, between two comments, and until the stream ends.
CHECK_SECONDS: Final = 0.5
_COMMENT: Final = 15.0
_LONGEST: Final = 60.0
HEADERS: Final = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    "Connection": "keep-alive",
    # Proxies of the nginx kind collect an answer otherwise.
    "X-Accel-Buffering": "no",
}
_FINAL: Final = frozenset({"completed", "failed", "cancelled", "partial"})


@dataclass(frozen=True, slots=True)
class Event:
    """An event: its name, its data, and the id that a client sends when it comes back."""

    name: str
    data: Mapping[str, Any]
    id: str | None = None

    def encode(self) -> bytes:
        """Return it as it is sent."""
        head = "" if self.id is None else f"id: {self.id}\n"
        return f"{head}event: {self.name}\ndata: {json.dumps(self.data)}\n\n".encode()


def comment() -> bytes:
    """Return a line that keeps the connection open and that clients ignore."""
    return b": still here\n\n"


def is_final(state: Mapping[str, Any], last_event_id: str | None) -> bool:
    """Whether a client that comes back has seen the final event, so that it is answered 204."""
    return state["status"] in _FINAL and last_event_id == _id(state)


class Follower:
    """The events of one stream, from the state at once to the final event or the timeout."""

    def __init__(self, now: float) -> None:
        self._ends_at = now + _LONGEST
        self._commented = now
        self._seen: Mapping[str, Any] | None = None
        self.is_over = False

    def step(self, state: Mapping[str, Any] | None, now: float) -> list[bytes]:
        """Return what is sent for the state that was read now; None if there is none any more."""
        sent: list[bytes] = []
        if state is None:
            self.is_over = True
            # Not `error`: browsers use that name for their own connection errors.
            return [Event("job_error", {"message": "The export no longer exists."}).encode()]
        if state != self._seen:
            self._seen = state
            self._commented = now
            sent.append(_event(state).encode())
            self.is_over = state["status"] in _FINAL
        if not self.is_over and now >= self._ends_at:
            self.is_over = True
            message = "Still working. Connect again to follow the export."
            sent.append(Event("timeout", {"message": message}).encode())
        elif not sent and now - self._commented >= _COMMENT:
            self._commented = now
            sent.append(comment())
        return sent


def _event(state: Mapping[str, Any]) -> Event:
    """The event for a state: that of an export has its id, that of a batch its exports."""
    is_batch = "batchId" in state and "jobs" in state
    subject = (
        {"batchId": state["batchId"], "jobs": state["jobs"]} if is_batch else {"jobId": state["id"]}
    )
    if state["status"] in _FINAL:
        # A batch of which some exports are complete has ended, and can be downloaded in part.
        name = "completed" if state["status"] == "partial" else state["status"]
        data = {**subject, "resultUrl": state.get("resultUrl"), "error": state.get("error")}
        return Event(name, data | ({"progress": 100} if is_batch else {}), _id(state))
    return Event(
        "progress",
        {**subject, "status": state["status"], "progress": state["progress"]},
        _id(state),
    )


def _id(state: Mapping[str, Any]) -> str:
    return f"{state.get('id') or state['batchId']}:{state['status']}:{state['progress']}"
