"""The arguments of `@app.task`, and how they become a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypedDict, cast

from trunkline.client.task_limits import limits_of
from trunkline.errors import InvalidTask
from trunkline.model import Backoff, Breaker, Duration, Schedule, TaskPolicy, seconds

__all__ = ["TaskArguments", "as_aliases", "as_cost", "as_policy", "as_schedule"]


class TaskArguments(TypedDict, total=False):
    """The keyword arguments of `@app.task`. For those left out, the engine uses its defaults."""

    # The name under which jobs are stored; by default the name of the function.
    name: str
    # Old names of a task that was renamed: its handler also runs jobs that are stored under them.
    aliases: Sequence[str]
    queue: str
    # How long a silent worker keeps a job; heartbeats extend it. Default 5 minutes.
    lease: Duration
    # How long an attempt may take at most. Default four leases.
    hard_limit: Duration
    # How often, and after what wait, a failed job is tried again. Default 4 times.
    max_attempts: int
    backoff: Backoff
    # From -50 to 49; higher ones start first.
    priority: int
    # Five cron fields, an alias such as @daily, or a Schedule.
    schedule: Schedule | str
    # Run the handler in a separate process, which is killed at the hard limit.
    process: bool
    # Record every transition as an event, not only the exceptional ones.
    audit: bool
    # Whether a unique key is held until the job is claimed or until it has ended.
    unique_until: Literal["claim", "end"]
    # A job becomes a dead letter after its worker has died this many times.
    crash_limit: int
    # Whether a dead worker's job is reclaimed at once, or only after its lease.
    reclaim_on_worker_death: bool
    # Whether a lost job waits for its back-off before the next attempt.
    lost_backoff: bool
    # Whether a job that was deferred too often becomes a dead letter.
    dead_when_deferred: bool
    profile: str
    # Names of limits, with {keys} to be filled in from the payload: "openai/{model}". Jobs wait
    # until all of them have room, and are charged when they are claimed; ctx.http and ctx.grant
    # charge each call when it is sent. An empty list removes them.
    limit: str | Sequence[str]
    # How many jobs of this task run at once: 3; or by key: {"document/{document}": 1}.
    concurrency: int | Mapping[str, int]
    # Whether the tenants of its queue take turns; every job then needs one.
    fair: bool
    # Whether the task stops for a while when its attempts fail: True, or a Breaker.
    breaker: bool | Breaker
    # What a job takes of its limits: {"tokens": 1200}, or a function of the handler's arguments.
    cost: Mapping[str, int] | Callable[..., Mapping[str, int]]


_NOT_POLICY = {
    *("name", "aliases", "schedule", "process"),
    *("limit", "cost", "concurrency", "fair", "breaker"),
}


def as_policy(handler: Callable[..., Any], arguments: TaskArguments) -> TaskPolicy:
    """Return the policy that the engine stores."""
    policy: dict[str, Any] = {
        name: value for name, value in arguments.items() if name not in _NOT_POLICY
    }
    for name in ("lease", "hard_limit"):
        if policy.get(name) is not None:
            policy[name] = seconds(cast("Duration", policy[name]))
    policy.setdefault("queue", "default")
    name = arguments.get("name") or handler.__name__
    _check_backoff(name, policy.get("backoff"))
    policy |= limits_of(
        name,
        policy["queue"],
        limit=arguments.get("limit"),
        concurrency=arguments.get("concurrency"),
        fair=arguments.get("fair", False),
        breaker=arguments.get("breaker", False),
    )
    cost = arguments.get("cost")
    if cost is not None and not policy.get("limits"):
        raise InvalidTask(
            f"Task {name} has a cost but no limit", hint='Name the limit: limit="openai".'
        )
    if isinstance(cost, Mapping):
        policy["cost"] = dict(cost)
    return TaskPolicy(task=name, **policy)


def _check_backoff(task: str, backoff: object) -> None:
    if isinstance(backoff, Backoff):
        # Report invalid durations now, not at the first failure.
        backoff.as_json()
    elif backoff is not None:
        raise InvalidTask(
            f"backoff of {task} is {type(backoff).__qualname__}",
            hint='Pass Backoff(base="10s", factor=2, cap="10m", jitter=0.2).',
        )


def as_aliases(task: str, arguments: TaskArguments) -> tuple[str, ...]:
    """Return the old names of a task."""
    aliases: object = arguments.get("aliases", ())
    if not isinstance(aliases, (list, tuple)) or not all(
        isinstance(alias, str) and alias for alias in aliases
    ):
        raise InvalidTask(
            f"aliases of {task} is {aliases!r}", hint='Pass a list of names: aliases=["old_name"].'
        )
    if task in aliases or len(set(aliases)) < len(aliases):
        raise InvalidTask(
            f"aliases of {task} is {aliases!r}",
            hint="List each old name once, without the task's present name.",
        )
    return tuple(aliases)


def as_cost(arguments: TaskArguments) -> Callable[..., Mapping[str, int]] | None:
    """Return the function that computes what a job takes, if there is one."""
    cost = arguments.get("cost")
    return None if cost is None or isinstance(cost, Mapping) else cost


def as_schedule(arguments: TaskArguments) -> Schedule | None:
    """Return the schedule, if there is one."""
    schedule = arguments.get("schedule")
    return Schedule(schedule) if isinstance(schedule, str) else schedule
