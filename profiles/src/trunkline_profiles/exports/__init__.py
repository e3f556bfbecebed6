"""Profile ``exports``: documents as PDF, one or ten at once, with limits for each user.

profiles/docs/exports.md describes what it offers and how to run it.
"""

from importlib.resources import files
from typing import Final

from trunkline.profiles import Phase, Profile, RollbackStep
from trunkline_profiles.exports.refusals import ERRORS

__all__ = ["PROFILE"]

PROFILE: Final = Profile(
    name="exports",
    description="An export service: résumés as PDF, single or as a ZIP, with quotas and expiry.",
    schema="exports",
    root=files(__package__) / "sql",
    phases=(Phase("phase1", "documents, exports, history, cleanup and metrics", core=True),),
    closing="closing.sql",
    # First drop what clients and workers call; drop tables only on request.
    rollback=(
        RollbackStep(
            "drop_functions",
            "drop the functions and views that users, workers and operators call",
            (
                "phase1/cleanup",
                "phase1/create",
                "phase1/operate",
                "phase1/options",
                "phase1/reading",
                "phase1/rollout",
                "phase1/status",
                "phase1/storage",
                "phase1/work",
            ),
            guard="busy_workers",
        ),
        RollbackStep(
            "drop_tables",
            "drop documents, people, records and the results of the roll-out",
            ("phase1/base", "phase1/documents", "phase1/records", "phase1/tasks"),
            optional=True,
        ),
    ),
    has_rollout=True,
    demo="trunkline_profiles.exports.demo",
    errors=ERRORS,
)
