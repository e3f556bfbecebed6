"""Sizes of the measures of limits."""

from dataclasses import dataclass, replace

__all__ = ["FULL", "QUICK", "SPEED", "FlowSizes"]


@dataclass(frozen=True, slots=True)
class FlowSizes:
    """The sizes of one run."""

    # Turns of the engine: jobs waiting on each side, rounds, seconds per turn.
    backlog: int
    rounds: int
    turn_seconds: float
    # Worker processes: jobs per drain and drains of each kind.
    drain_jobs: int
    drain_repetitions: int
    # Keys with separate limits, and jobs for which bytes of the log are counted.
    keys: int
    log_jobs: int
    # Jobs behind a spent limit.
    spent: int
    # Under a held snapshot: seconds, length of a window, jobs of the run that estimates the speed.
    held_seconds: float
    held_window: float
    held_probe: int
    # Fairness: jobs of the large tenant, and how often a single job of another tenant arrives.
    tenant_jobs: int
    visits: int
    # Accuracy: seconds under limits, worker processes, seconds between kills.
    accuracy_seconds: float
    accuracy_processes: int
    kill_every: float
    # Calls per round with and without a limit, and rounds of each.
    limited_calls: int
    limited_call_rounds: int


FULL = FlowSizes(
    backlog=250_000,
    rounds=16,
    turn_seconds=0.25,
    drain_jobs=100_000,
    drain_repetitions=5,
    keys=1_000,
    log_jobs=50_000,
    spent=100_000,
    held_seconds=60.0,
    held_window=10.0,
    held_probe=100_000,
    tenant_jobs=10_000,
    visits=100,
    accuracy_seconds=190.0,
    accuracy_processes=8,
    kill_every=3.0,
    limited_calls=200,
    limited_call_rounds=5,
)

SPEED = replace(
    FULL,
    drain_jobs=40_000,
    drain_repetitions=3,
    log_jobs=20_000,
    held_seconds=24.0,
    held_window=6.0,
    held_probe=60_000,
)

QUICK = FlowSizes(
    backlog=40_000,
    rounds=2,
    turn_seconds=0.05,
    drain_jobs=1_000,
    drain_repetitions=1,
    keys=50,
    log_jobs=1_000,
    spent=2_000,
    held_seconds=1.5,
    held_window=0.5,
    held_probe=5_000,
    tenant_jobs=500,
    visits=3,
    accuracy_seconds=4.0,
    accuracy_processes=2,
    kill_every=1.0,
    limited_calls=20,
    limited_call_rounds=1,
)
