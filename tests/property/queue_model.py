"""A small model of the queue: what each function must answer, one caller at a time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

__all__ = ["CRASH_LIMIT", "POLICIES", "Job", "Model", "Policy"]

CRASH_LIMIT = 3
IMMEDIATE_RELEASES = 5
ENDED = ("completed", "cancelled", "dead")


@dataclass(frozen=True, slots=True)
class Policy:
    """The parts of a task's policy that the model knows."""

    queue: str
    max_attempts: int
    lease: timedelta
    hard_limit: timedelta
    unique_until: str


POLICIES = {
    "patient": Policy("a", 3, timedelta(minutes=10), timedelta(minutes=25), "end"),
    "brittle": Policy("b", 1, timedelta(minutes=3), timedelta(minutes=3), "claim"),
}


@dataclass(slots=True)
class Job:
    """One job; ``state`` is waiting, running, completed, cancelled or dead."""

    task: str
    priority: int
    run_at: datetime
    unique_key: str | None = None
    state: str = "waiting"
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    deferrals: int = 0
    worker: str | None = None
    cancel_asked: bool = False
    # A heartbeat has returned cancel for the running attempt.
    cancel_told: bool = False
    lease_until: datetime | None = None
    deadline: datetime | None = None
    retried_as: UUID | None = None

    @property
    def policy(self) -> Policy:
        return POLICIES[self.task]


@dataclass(slots=True)
class Model:
    """All jobs that exist, who holds which unique key, and what idempotency keys answered."""

    jobs: dict[UUID, Job] = field(default_factory=dict)
    keys: dict[tuple[str, str], UUID] = field(default_factory=dict)
    answers: dict[str, tuple[str, UUID]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    discarded: list[UUID] = field(default_factory=list)
    workers: dict[str, datetime] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    def live(self) -> list[UUID]:
        return [id_ for id_, job in self.jobs.items() if job.state not in ENDED]

    def add(self, id_: UUID, job: Job) -> None:
        assert id_ not in self.jobs, "an id came twice"
        assert id_ not in self.discarded, "the id of a discarded job came back"
        self.jobs[id_] = job
        if job.unique_key:
            self.keys[job.task, job.unique_key] = id_

    def raise_priority(self, id_: UUID, priority: int) -> None:
        job = self.jobs[id_]
        if job.state == "waiting":
            job.priority = max(job.priority, priority)

    def free_key(self, id_: UUID) -> None:
        job = self.jobs[id_]
        if job.unique_key and self.keys.get((job.task, job.unique_key)) == id_:
            del self.keys[job.task, job.unique_key]

    def claimable(self, queues: list[str] | None, now: datetime) -> list[UUID]:
        return [
            id_
            for id_, job in self.jobs.items()
            if job.state == "waiting"
            and job.run_at <= now
            and job.policy.queue not in self.paused
            and (queues is None or job.policy.queue in queues)
        ]

    def best(
        self, ids: Iterable[UUID], queues: list[str] | None, limit: int
    ) -> list[tuple[int, int]]:
        """Return (place of the queue, priority) of what a claim must bring, best first."""
        order = queues or sorted({policy.queue for policy in POLICIES.values()})
        places = [
            (order.index(self.jobs[id_].policy.queue), -self.jobs[id_].priority) for id_ in ids
        ]
        return sorted(places)[:limit]

    def start(self, id_: UUID, worker: str, lease_until: datetime, deadline: datetime) -> None:
        job = self.jobs[id_]
        job.state, job.worker, job.attempt = "running", worker, job.attempt + 1
        job.cancel_asked = job.cancel_told = False
        job.lease_until, job.deadline = lease_until, deadline
        if job.policy.unique_until == "claim":
            self.free_key(id_)

    def holds(self, id_: UUID, attempt: int, worker: str) -> bool:
        job = self.jobs.get(id_)
        return job is not None and (job.state, job.attempt, job.worker) == (
            "running",
            attempt,
            worker,
        )

    def end(self, id_: UUID, state: str, run_at: datetime | None = None) -> None:
        """Take a job out of running; back to waiting keeps its key."""
        job = self.jobs[id_]
        job.state = state
        if state == "waiting":
            assert run_at is not None
            job.run_at = run_at
        else:
            self.free_key(id_)

    def fail(self, id_: UUID, retryable: bool) -> str:
        job = self.jobs[id_]
        job.failures, job.deferrals = job.failures + 1, 0
        if job.cancel_asked:
            return "cancelled"
        return "waiting" if retryable and job.failures < job.policy.max_attempts else "dead"

    def defer(self, id_: UUID) -> str:
        job = self.jobs[id_]
        job.deferrals += 1
        return "cancelled" if job.cancel_asked else "waiting"

    def lose(self, id_: UUID) -> str:
        job = self.jobs[id_]
        job.failures += 1
        job.crashes += job.worker in self.gone
        if job.cancel_asked:
            return "cancelled"
        spent = job.failures >= job.policy.max_attempts or job.crashes >= CRASH_LIMIT
        return "dead" if spent else "waiting"

    def lost(self, now: datetime, silent: Callable[[str], bool]) -> set[UUID]:
        """Mark silent workers as gone; return the running jobs a reclaim must take."""
        self.gone |= {name for name in self.workers if silent(name)}
        return {
            id_
            for id_, job in self.jobs.items()
            if job.state == "running"
            and job.lease_until is not None
            and (job.lease_until <= now or job.worker in self.gone)
        }

    def replay(self, id_: UUID, now: datetime) -> None:
        job = self.jobs[id_]
        job.state, job.run_at = "waiting", now
        job.failures = job.crashes = job.deferrals = 0
        job.worker, job.cancel_asked, job.cancel_told = None, False, False
        if job.unique_key:
            self.keys[job.task, job.unique_key] = id_

    def discard(self, id_: UUID) -> None:
        del self.jobs[id_]
        self.discarded.append(id_)
