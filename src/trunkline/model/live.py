"""What a follower of a job or workflow sees: its present state, and events made from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

__all__ = [
    "JobEvent",
    "JobEvents",
    "LiveJob",
    "LiveWorkflow",
    "WorkflowEvent",
    "WorkflowEvents",
]

_FINAL: Final = frozenset({"completed", "cancelled", "dead", "failed"})


class LiveJob(NamedTuple):
    """The present state of a job, with the output that its attempt emitted after an offset."""

    job_id: UUID
    task: str
    state: str
    attempt: int
    progress: int | None
    phase: str | None
    message: str | None
    reason: str | None
    tenant: str | None
    run_at: datetime
    finished_at: datetime | None
    workflow_id: UUID | None
    chunks: str | None
    chunk_number: int | None
    has_more: bool

    @property
    def final(self) -> bool:
        """Whether the job has ended."""
        return self.state in _FINAL


class LiveWorkflow(NamedTuple):
    """The present state of a workflow."""

    workflow_id: UUID
    name: str
    state: str
    generation: int
    percent: int
    phase: str | None
    message: str | None
    reason: str | None
    tenant: str | None
    jobs: int
    ended_at: datetime | None

    @property
    def final(self) -> bool:
        """Whether the workflow has ended."""
        return self.state in _FINAL


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """One event of a job that is followed.

    `state`: the job changed. `chunk`: it emitted `text`. `reset`: a new attempt has started, so the
    text so far is void. `end`: the job has ended; no event follows.
    """

    kind: Literal["state", "reset", "chunk", "end"]
    # Where to continue: `follow(job, after=event.id)`.
    id: str
    job_id: UUID
    state: str
    attempt: int
    progress: int | None = None
    phase: str | None = None
    message: str | None = None
    reason: str | None = None
    text: str | None = None

    def data(self) -> dict[str, Any]:
        """Return the fields as JSON values, as a stream sends them."""
        fields = {"job": str(self.job_id), "state": self.state, "attempt": self.attempt}
        if self.kind == "chunk":
            return {**fields, "text": self.text}
        return {
            **fields,
            "progress": self.progress,
            "phase": self.phase,
            "message": self.message,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowEvent:
    """One event of a workflow that is followed: `state` or, at last, `end`."""

    kind: Literal["state", "end"]
    id: str
    workflow_id: UUID
    name: str
    state: str
    generation: int
    percent: int
    phase: str | None
    message: str | None
    reason: str | None
    jobs: int

    def data(self) -> dict[str, Any]:
        """Return the fields as JSON values, as a stream sends them."""
        return {
            "workflow": str(self.workflow_id),
            "name": self.name,
            "state": self.state,
            "generation": self.generation,
            "percent": self.percent,
            "phase": self.phase,
            "message": self.message,
            "reason": self.reason,
            "jobs": self.jobs,
        }


class JobEvents:
    """Makes events from successive states of one job, and remembers the offset in its output.

    The id of an event is `attempt.number`, the last chunk that was received; `attempt.number.end`
    after the end. An id that cannot be read starts from the beginning.
    """

    def __init__(self, after: str | None = None) -> None:
        self.attempt = 0
        self.number = 0
        self.ended = False
        # Whether the follower had received the end before this object was created.
        self.resumed_after_end = False
        self._shown: tuple[Any, ...] | None = None
        parts = (after or "").split(".")
        if len(parts) in {2, 3} and all(map(_is_number, parts[:2])) and parts[2:] in ([], ["end"]):
            self.attempt, self.number = int(parts[0]), int(parts[1])
            self.resumed_after_end = len(parts) == 3

    @property
    def id(self) -> str:
        """The id of the latest event."""
        return f"{self.attempt}.{self.number}" + (".end" if self.ended else "")

    def of(self, job: LiveJob) -> Iterator[JobEvent]:
        """Yield what changed since the previous state."""
        if job.attempt != self.attempt:
            is_void = self.number > 0
            self.attempt, self.number = job.attempt, 0
            if is_void:
                yield self._event("reset", job)
        shown = (job.state, job.attempt, job.progress, job.phase, job.message, job.reason)
        over = job.final and not job.has_more
        if shown != self._shown and not job.final:
            self._shown = shown
            yield self._event("state", job)
        if job.chunks:
            self.number = job.chunk_number or self.number
            yield self._event("chunk", job, job.chunks)
        if over:
            self.ended = True
            yield self._event("end", job)

    def _event(
        self, kind: Literal["state", "reset", "chunk", "end"], job: LiveJob, text: str | None = None
    ) -> JobEvent:
        return JobEvent(
            kind=kind,
            id=self.id,
            job_id=job.job_id,
            state=job.state,
            attempt=job.attempt,
            progress=job.progress,
            phase=job.phase,
            message=job.message,
            reason=job.reason,
            text=text,
        )


class WorkflowEvents:
    """Makes events from successive states of one workflow."""

    def __init__(self, after: str | None = None) -> None:
        self.ended = False
        self.resumed_after_end = (after or "").endswith(".end")
        self._shown: tuple[Any, ...] | None = None

    def of(self, workflow: LiveWorkflow) -> Iterator[WorkflowEvent]:
        """Yield an event if the workflow changed."""
        shown = workflow[1:8]
        if shown == self._shown:
            return
        self._shown = shown
        self.ended = workflow.final
        yield WorkflowEvent(
            kind="end" if self.ended else "state",
            id=f"{workflow.generation}.{workflow.percent}" + (".end" if self.ended else ""),
            workflow_id=workflow.workflow_id,
            name=workflow.name,
            state=workflow.state,
            generation=workflow.generation,
            percent=workflow.percent,
            phase=workflow.phase,
            message=workflow.message,
            reason=workflow.reason,
            jobs=workflow.jobs,
        )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9
