"""Profile ``studio``: one order becomes texts, PDFs and recordings, with one progress bar.

profiles/docs/studio.md describes what it offers and how to run it.
"""

from importlib.resources import files
from typing import Final

from trunkline.profiles import Phase, Profile, RollbackStep
from trunkline_profiles.studio.refusals import ERRORS

__all__ = ["PROFILE"]

PROFILE: Final = Profile(
    name="studio",
    description="A content studio: orders of many documents as text, PDF/A and speech.",
    schema="studio",
    root=files(__package__) / "sql",
    phases=(Phase("phase1", "orders, tasks, files, metrics and the cut-over", core=True),),
    closing="closing.sql",
    # First drop what clients and workers call; drop tables only on request.
    rollback=(
        RollbackStep(
            "drop_functions",
            "drop the functions and views that users, workers and operators call",
            (
                "phase1/operate",
                "phase1/orders",
                "phase1/reading",
                "phase1/rollout",
                "phase1/scaling",
                "phase1/work",
            ),
            guard="busy_workers",
        ),
        RollbackStep(
            "drop_tables",
            "drop the catalogue, the jobs of the older system and the results of the cut-over",
            ("phase1/base", "phase1/catalogue", "phase1/routing"),
            optional=True,
        ),
    ),
    has_rollout=True,
    demo="trunkline_profiles.studio.demo",
    errors=ERRORS,
)
