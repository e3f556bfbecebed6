"""What a task says about how its jobs are run. The engine keeps it as a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trunkline.model.duration import Duration, seconds

__all__ = ["Backoff", "Schedule", "TaskPolicy"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """The wait after the n-th failure: base x factor^(n-1), at most cap, times 1 ± jitter."""

    base: Duration = 10
    factor: float = 2.0
    cap: Duration = "10m"
    jitter: float = 0.2

    def as_json(self) -> dict[str, float]:
        """As register_task takes it."""
        return {
            "base": seconds(self.base),
            "factor": self.factor,
            "cap": seconds(self.cap),
            "jitter": self.jitter,
        }


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the engine enqueues a task by itself: five cron fields, or an alias such as @daily."""

    cron: str
    time_zone: str = "UTC"
    payload: Mapping[str, Any] = field(default_factory=dict)
    # What happens to runs nobody was there for: one of them is made up for, or none.
    missed: str = "once"


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """The policy of one task; what is None keeps the engine's default or what an operator set."""

    task: str
    queue: str | None = None
    lease: float | None = None
    hard_limit: float | None = None
    max_attempts: int | None = None
    backoff: Backoff | None = None
    audit: bool | None = None
    priority: int | None = None
    unique_until: str | None = None
    crash_limit: int | None = None
    reclaim_on_worker_death: bool | None = None
    lost_backoff: bool | None = None
    dead_when_deferred: bool | None = None
    profile: str | None = None
    limits: tuple[str, ...] | None = None
    cost: Mapping[str, int] | None = None
