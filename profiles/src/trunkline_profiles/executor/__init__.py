"""Profile ``executor``: document protection whose jobs have a time-to-live by type.

profiles/docs/executor.md describes what it offers and how to run it.
"""

from importlib.resources import files
from typing import Final

from trunkline.profiles import Phase, Profile, RollbackStep

__all__ = ["PROFILE"]

PROFILE: Final = Profile(
    name="executor",
    description="Document protection: hashes, time stamps, anchors and proofs under a TTL by type.",
    schema="executor",
    root=files(__package__) / "sql",
    phases=(
        Phase("phase1", "record, reclaim and wake-ups", core=True),
        Phase("phase2", "heartbeats of third-party workers", after=("phase1",)),
        Phase("phase3", "monitoring views", after=("phase1",)),
    ),
    closing="closing.sql",
    # Wrappers first, because they call what is dropped; the heartbeat last, because workers call
    # it.
    rollback=(
        RollbackStep("restore_wrappers", "restore the wake-ups", ("phase1/wrappers",)),
        RollbackStep("drop_views", "drop the monitoring views", ("phase3/views",)),
        RollbackStep("drop_reclaim", "drop reclaim_stale_jobs", ("phase1/reclaim",)),
        RollbackStep(
            "drop_heartbeat",
            "drop update_job_heartbeat",
            ("phase2/heartbeat",),
            guard="heartbeat_callers",
        ),
        RollbackStep(
            "drop_record", "drop executor_jobs and its tables", ("phase1/record",), optional=True
        ),
    ),
    topics={
        "stuck": (
            ("reclaim running now, in other sessions", "reclaim_now"),
            ("duty and wake-ups", "schedules"),
            ("last ten wake-ups", "last_cycles"),
        ),
        "nothing": (("running and locked for more than five minutes", "running_long"),),
        "many": (("reclaims of the last hour by type and outcome", "reclaims_by_type"),),
    },
    has_validation=True,
    wake_up="wake",
    demo="trunkline_profiles.executor.demo",
)
