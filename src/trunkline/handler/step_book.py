"""What one attempt knows about its steps: recorded ones, running ones, and used names."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from trunkline.errors import InvalidArgument, StepConflict
from trunkline.model import RecordedStep, UploadedFile

__all__ = ["StepBook", "StepId"]

_LONGEST_NAME = 200


class StepId(NamedTuple):
    """Identifies a step within its job. `key` is the caller's, or # and the number of the call."""

    kind: str
    name: str
    key: str


class StepBook:
    """Numbers the calls of each name, and finds what earlier attempts have recorded.

    Threads of one handler may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._recorded: dict[StepId, RecordedStep] = {}
        self._calls: Counter[tuple[str, str]] = Counter()
        self._running: Counter[tuple[str, str]] = Counter()
        self._running_ids: set[StepId] = set()
        self._place = 0
        # Calls that are in progress, without those that wait to suspend the attempt.
        self.in_progress = 0
        # Set when the first wait has ended the attempt: from then on no call may start.
        self.suspended = False

    def load(self, recorded: Iterable[RecordedStep]) -> None:
        """Add what earlier attempts have recorded."""
        for step in recorded:
            self._recorded.setdefault(StepId(step.kind, step.name, step.key), step)
            self._place = max(self._place, step.place)

    def find(self, step: StepId) -> RecordedStep | None:
        """Return what was recorded for a call, or None."""
        return self._recorded.get(step)

    def add(
        self,
        step: StepId,
        place: int,
        digest: int | None,
        result: str | None,
        file: UploadedFile | None = None,
    ) -> RecordedStep:
        """Add what this attempt has recorded. A large result is in a file."""
        recorded = RecordedStep(*step, place, digest, result)
        if file is not None:
            recorded = recorded._replace(path=file.storage_path, sha256=file.sha256)
        with self._lock:
            self._recorded[step] = recorded
        return recorded

    def next_place(self) -> int:
        """Return the number of the next recorded step."""
        with self._lock:
            self._place += 1
            return self._place

    @contextmanager
    def calling(self, kind: str, name: str, key: str | None) -> Iterator[StepId]:
        """Identify a call, and refuse it if a call in progress has the same identity."""
        _check(name, "name")
        if key is not None:
            _check(key, "key")
        with self._lock:
            step = self._identify(kind, name, key)
            self._running[kind, name] += key is None
            self._running_ids.add(step)
            self.in_progress += 1
        try:
            yield step
        finally:
            with self._lock:
                self._running[kind, name] -= key is None
                self._running_ids.discard(step)
                self.in_progress -= 1

    @contextmanager
    def parked(self) -> Iterator[None]:
        """Do not count the call in progress while it waits for the others."""
        with self._lock:
            self.in_progress -= 1
        try:
            yield
        finally:
            with self._lock:
                self.in_progress += 1

    def _identify(self, kind: str, name: str, key: str | None) -> StepId:
        if key is None:
            if self._running[kind, name]:
                raise StepConflict(f"Two calls of {kind} {name} run at the same time without key=")
            self._calls[kind, name] += 1
            number = self._calls[kind, name]
            if kind == "event" and number > 1:
                raise StepConflict(
                    f"The handler waits for event {name} a second time without key=",
                    hint="A job receives one event of a name. Pass key= and send the second event "
                    "to that key, or use another name.",
                )
            return StepId(kind, name, f"#{number}")
        step = StepId(kind, name, key)
        if step in self._running_ids:
            raise StepConflict(f"Two calls of {kind} {name} with key {key} run at the same time")
        return step


def _check(text: object, what: str) -> None:
    if not isinstance(text, str) or not text or len(text) > _LONGEST_NAME or text[0] == "#":
        raise InvalidArgument(
            f"the {what} of a step is not valid",
            hint=f"Pass text of 1 to {_LONGEST_NAME} characters that does not begin with #.",
            detail={what: repr(text)[:_LONGEST_NAME]},
        )
