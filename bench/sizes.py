"""Sizes of each measure: in full, or just enough to check that its code works."""

from dataclasses import dataclass, replace

from bench.artifacts import sizes as artifact_sizes
from bench.backlog import sizes as backlog_sizes
from bench.flow import sizes as flow_sizes
from bench.live import sizes as live_sizes
from bench.soak import sizes as soak_sizes
from bench.steps import sizes as step_sizes
from bench.studio import sizes as studio_sizes
from bench.workflows import sizes as workflow_sizes

__all__ = ["FULL", "QUICK", "SPEED", "Sizes"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of one run."""

    repetitions: int
    # claim_complete: slices per side in each repetition, and seconds per slice.
    slices: int
    slice_seconds: float
    backlog: int
    # enqueue_many and single enqueue: calls per side in one repetition.
    enqueue_calls: int
    single_calls: int
    # depth: jobs waiting in the shallow and in the deep database, rows finished, claims timed.
    shallow: int
    deep: int
    history: int
    claims: int
    buffer_claims: int
    # held_snapshot
    held_seconds: float
    held_window: float
    held_probe: int
    held_scheduled: int
    # wal: jobs per payload size, for payloads of 100 bytes, 8 KB and 200 KB.
    wal_jobs: tuple[int, int, int]
    # Whole processes: jobs per drain and drains per contender; jobs picked up; turns of single
    # enqueues; jobs for the growth of memory, and seconds to let it settle; calls of --help.
    drain_jobs: int
    drain_repetitions: int
    pickup_jobs: int
    single_turns: int
    memory_jobs: int
    memory_settle: float
    help_calls: int
    # drivers: turns of each form, and jobs in each turn.
    driver_turns: int
    driver_jobs: int
    soak: soak_sizes.SoakSizes
    flow: flow_sizes.FlowSizes
    backlog_reads: backlog_sizes.BacklogSizes
    workflows: workflow_sizes.WorkflowSizes
    steps: step_sizes.StepSizes
    live: live_sizes.LiveSizes
    studio: studio_sizes.StudioSizes
    artifacts: artifact_sizes.ArtifactSizes


FULL = Sizes(
    repetitions=5,
    slices=6,
    slice_seconds=0.25,
    backlog=400_000,
    enqueue_calls=12,
    single_calls=400,
    shallow=10_000,
    deep=2_000_000,
    history=5_000_000,
    claims=1_000,
    buffer_claims=60,
    held_seconds=90.0,
    held_window=10.0,
    held_probe=150_000,
    held_scheduled=180_000,
    wal_jobs=(5_000, 2_000, 200),
    drain_jobs=40_000,
    drain_repetitions=5,
    pickup_jobs=500,
    single_turns=20,
    memory_jobs=200_000,
    memory_settle=3.0,
    help_calls=11,
    driver_turns=6,
    driver_jobs=3_000,
    soak=soak_sizes.FULL,
    flow=flow_sizes.FULL,
    backlog_reads=backlog_sizes.FULL,
    workflows=workflow_sizes.FULL,
    steps=step_sizes.FULL,
    live=live_sizes.FULL,
    studio=studio_sizes.FULL,
    artifacts=artifact_sizes.FULL,
)

# Two versions and every goal in about twelve minutes.
SPEED = replace(
    FULL,
    single_turns=60,
    deep=500_000,
    history=1_000_000,
    claims=400,
    buffer_claims=30,
    held_seconds=30.0,
    held_window=6.0,
    held_probe=80_000,
    held_scheduled=60_000,
    soak=soak_sizes.SPEED,
    flow=flow_sizes.SPEED,
)

QUICK = Sizes(
    repetitions=2,
    slices=1,
    slice_seconds=0.2,
    backlog=40_000,
    enqueue_calls=2,
    single_calls=20,
    shallow=2_000,
    deep=10_000,
    history=10_000,
    claims=20,
    buffer_claims=5,
    held_seconds=1.5,
    held_window=0.5,
    held_probe=30_000,
    held_scheduled=3_000,
    wal_jobs=(200, 100, 10),
    drain_jobs=2_000,
    drain_repetitions=2,
    pickup_jobs=10,
    single_turns=2,
    memory_jobs=2_000,
    memory_settle=0.1,
    help_calls=2,
    driver_turns=2,
    driver_jobs=500,
    soak=soak_sizes.QUICK,
    flow=flow_sizes.QUICK,
    backlog_reads=backlog_sizes.QUICK,
    workflows=workflow_sizes.QUICK,
    steps=step_sizes.QUICK,
    live=live_sizes.QUICK,
    studio=studio_sizes.QUICK,
    artifacts=artifact_sizes.QUICK,
)
