"""Profiles: tasks, limits and an outer API in the words of another system, built on the engine.

A profile uses nothing but the engine's public surface: the functions and views of schema
``trunkline``. Its own objects live in its own schema. A distribution ships a profile by an entry
point of the group ``trunkline.profiles``; docs/how-to/profiles.md has an example.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trunkline.profiles.demos import Account, Demo, temporary_database, temporary_site
    from trunkline.profiles.installer import ScriptState, install, rollback, status
    from trunkline.profiles.profile import Phase, Profile, RollbackStep, Script
    from trunkline.profiles.registry import get, names
    from trunkline.profiles.sessions import Session, session
    from trunkline.profiles.verification import catalogue

__all__ = [
    "Account",
    "Demo",
    "Phase",
    "Profile",
    "RollbackStep",
    "Script",
    "ScriptState",
    "Session",
    "catalogue",
    "get",
    "install",
    "names",
    "rollback",
    "session",
    "status",
    "temporary_database",
    "temporary_site",
]

# Names are imported when they are asked for: a profile is described without the driver.
_HOMES = {
    "Account": "demos",
    "Demo": "demos",
    "Phase": "profile",
    "Profile": "profile",
    "RollbackStep": "profile",
    "Script": "profile",
    "ScriptState": "installer",
    "Session": "sessions",
    "catalogue": "verification",
    "get": "registry",
    "install": "installer",
    "names": "registry",
    "rollback": "installer",
    "session": "sessions",
    "status": "installer",
    "temporary_database": "demos",
    "temporary_site": "demos",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'trunkline.profiles' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415 - as above

    value = getattr(import_module(f"trunkline.profiles.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
