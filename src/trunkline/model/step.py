"""Steps of handlers as the engine records and shows them, and events that jobs wait for."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

__all__ = ["JobStep", "NewStep", "RecordedStep", "SentEvent", "WaitAnswer"]


class NewStep(NamedTuple):
    """A step that is to be recorded; `result` is JSON text."""

    job: UUID
    attempt: int
    place: int
    name: str
    key: str
    arguments_hash: int | None
    result: str | None


class RecordedStep(NamedTuple):
    """A recorded step as the next attempt reads it; `result` is JSON text."""

    kind: str
    name: str
    key: str
    place: int
    arguments_hash: int | None
    result: str | None
    # The file of a result that is in the store.
    path: str | None = None
    sha256: str | None = None


class StepResult(NamedTuple):
    """The result of one job of a step of a workflow, with its index in the step."""

    item: int
    result: Any
    # The file of a result that is in the store, and its size.
    path: str | None = None
    sha256: str | None = None
    bytes: int | None = None


class WaitAnswer(NamedTuple):
    """What became of a wait: over, timeout, run, wait or cancel; `result` is JSON text."""

    outcome: str
    until: datetime | None
    result: str | None
    # The file of a result that is in the store.
    path: str | None = None
    sha256: str | None = None


class JobStep(NamedTuple):
    """A step of a job: recorded with its result, or waiting for a time, an event or other jobs."""

    place: int
    kind: str
    name: str
    key: str
    state: str
    attempt: int
    recorded_at: datetime | None = None
    until: datetime | None = None
    result: Any = None
    # The size of a result that is in the store; `result` then names its artifact.
    bytes: int | None = None


class SentEvent(NamedTuple):
    """What sending an event did: delivered, stored or already; how many jobs it resumed."""

    outcome: str
    resumed: int
    # When the event that counts was sent: an earlier one if the outcome is already.
    sent_at: datetime
