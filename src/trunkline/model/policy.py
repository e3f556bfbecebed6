"""Policies of tasks: how their jobs run. The engine stores a policy as a row."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trunkline.model.duration import Duration, seconds

__all__ = ["Backoff", "Breaker", "Schedule", "TaskPolicy"]


@dataclass(frozen=True, slots=True)
class Backoff:
    """The delay after the n-th failure: base x factor^(n-1), at most cap, times 1 ± jitter."""

    base: Duration = 10
    factor: float = 2.0
    cap: Duration = "10m"
    jitter: float = 0.2

    def as_json(self) -> dict[str, float]:
        """Return the document that register_task takes."""
        return {
            "base": seconds(self.base),
            "factor": self.factor,
            "cap": seconds(self.cap),
            "jitter": self.jitter,
        }


@dataclass(frozen=True, slots=True)
class Breaker:
    """Stops a task after too many failures: a number and a share of attempts within a window.

    After ``probe_after`` a single job starts. If it succeeds, the others continue.
    """

    failures: int = 10
    share: float = 0.2
    window: Duration = "10m"
    probe_after: Duration = "1m"

    def as_parts(self) -> dict[str, Any]:
        """Return the breaker as parts of a limit."""
        return {
            "breaker_failures": self.failures,
            "breaker_share": self.share,
            "breaker_window": f"{seconds(self.window):f} seconds",
            "breaker_probe_after": f"{seconds(self.probe_after):f} seconds",
        }


@dataclass(frozen=True, slots=True)
class Schedule:
    """When the engine enqueues a task: five cron fields, or an alias such as @daily."""

    cron: str
    time_zone: str = "UTC"
    payload: Mapping[str, Any] = field(default_factory=dict)
    # Due times that passed while no worker ran: enqueue one job ("once"), "all", or none ("skip").
    missed: str = "once"


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """The policy of one task. None keeps the engine's default, or the value an operator set."""

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
    # Limits declared in the code: their names and parts.
    declares: Mapping[str, Mapping[str, Any]] | None = None
    # Set for an alias: the task whose handler runs jobs under this old name.
    alias_of: str | None = None
