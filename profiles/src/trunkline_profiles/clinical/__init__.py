"""Profile ``clinical``: clinical documents through screening, OCR and AI passes, within limits.

profiles/docs/clinical.md describes what it offers and how to run it.
"""

from importlib.resources import files
from typing import Final

from trunkline.profiles import Phase, Profile, RollbackStep
from trunkline_profiles.clinical.refusals import ERRORS

__all__ = ["PROFILE"]

PROFILE: Final = Profile(
    name="clinical",
    description="Clinical documents: screening, OCR and AI passes under providers' limits.",
    schema="clinical",
    root=files(__package__) / "sql",
    phases=(
        Phase("phase1", "files, jobs, limits, configuration, audit and roll-out", core=True),
        Phase("phase2", "taking over the older tables", after=("phase1",)),
    ),
    closing="closing.sql",
    # First drop what clients and workers call; drop tables only on request.
    rollback=(
        RollbackStep(
            "drop_functions",
            "drop the functions that clients and workers call",
            (
                "phase1/capacity",
                "phase1/enqueue",
                "phase1/operate",
                "phase1/pipeline",
                "phase1/rollout",
                "phase1/stage",
                "phase1/upload",
                "phase1/work",
                "phase2/migration",
            ),
            guard="busy_workers",
        ),
        RollbackStep(
            "drop_tables",
            "drop files, records, audit and configuration",
            (
                "phase1/audit",
                "phase1/base",
                "phase1/configuration",
                "phase1/files",
                "phase1/job_types",
                "phase1/jobs",
                "phase1/legacy",
                "phase1/limits",
                "phase1/patients",
            ),
            optional=True,
        ),
    ),
    # Granted by open_legacy_views, a step of the roll-back.
    optional_grants=frozenset(
        f"select on view clinical.{name} to trunkline_producer"
        for name in ("legacy_job_queue", "legacy_shell_files")
    ),
    has_rollout=True,
    demo="trunkline_profiles.clinical.demo",
    errors=ERRORS,
)
