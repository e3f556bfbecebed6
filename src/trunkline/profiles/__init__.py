"""Profiles: tasks, limits and an outer API in the words of another system, built on the engine.

A profile uses nothing but the engine's public surface: the functions and views of schema
``trunkline``. Its own objects live in a schema of its own.
"""

import importlib
from typing import Final

from trunkline.errors import UnknownProfile
from trunkline.profiles.profile import Phase, Profile, RollbackStep, Script

__all__ = ["NAMES", "Phase", "Profile", "RollbackStep", "Script", "get"]

# Modules that hold a PROFILE, imported when asked for.
_MODULES: Final = {
    "clinical": "trunkline_profiles.clinical",
    "executor": "trunkline_profiles.executor",
}

NAMES: Final = tuple(sorted(_MODULES))


def get(name: str) -> Profile:
    """The profile of that name."""
    if name not in _MODULES:
        raise UnknownProfile(f"There is no profile {name!r}; there are: {', '.join(NAMES)}")
    found = importlib.import_module(_MODULES[name]).PROFILE
    assert isinstance(found, Profile)  # noqa: S101 - a mistake in the table above
    return found
