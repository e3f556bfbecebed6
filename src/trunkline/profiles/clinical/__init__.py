"""Profile ``clinical``: medical documents through screening, OCR and AI passes, under providers' limits.

What it offers and how it is run is in docs/profiles/clinical.md.
"""

from importlib.resources import files
from typing import Final

from trunkline.profiles.profile import Phase, Profile, RollbackStep

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
    rollback=(),
)
