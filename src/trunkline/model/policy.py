"""What a task says about how its jobs are run. The engine keeps it as a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trunkline.model.duration import Duration, seconds

__all__ = ["Backoff", "Breaker", "Schedule", "TaskPolicy"]


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
class Breaker:
    """Stops a task whose attempts fail: so many, and at least that share, within a window.

    After a while one job is tried; if it succeeds, the others go on.
    """

    failures: int = 10
    share: float = 0.2
    window: Duration = "10m"
    probe_after: Duration = "1m"

    def as_parts(self) -> dict[str, Any]:
        """As parts of a limit."""
        return {
            "breaker_failures": self.failures,
            "breaker_share": self.share,
            "breaker_window": f"{seconds(self.window):f} seconds",
            "breaker_probe_after": f"{seconds(self.probe_after):f} seconds",
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
    # Limits that the code brings along: their names and parts.
    declares: Mapping[str, Mapping[str, Any]] | None = None
    # The task whose handler runs jobs of this name, which is an old name of it.
    alias_of: str | None = None
