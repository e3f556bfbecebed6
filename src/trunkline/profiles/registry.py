"""Finds profiles by the entry points of installed distributions and loads them when asked for.

[project.entry-points."trunkline.profiles"]
shop = "shop_profile:PROFILE"
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from trunkline.errors import DuplicateProfile, ProfileBroken, UnknownProfile
from trunkline.profiles.profile import Profile

__all__ = ["GROUP", "distribution", "get", "names"]

GROUP: Final = "trunkline.profiles"
_OURS: Final = (
    "Install the profiles that come with Trunkline with: "
    "pip install 'trunkline-profiles[clinical,executor,exports,studio]'"
)


def names() -> tuple[str, ...]:
    """Return the names of all profiles in order; nothing is imported."""
    return tuple(sorted({entry.name for entry in entry_points(group=GROUP)}))


def get(name: str) -> Profile:
    """Import the profile of that name."""
    entry = _entry(name)
    source = f"{name!r} of {_provider(entry)}"
    try:
        profile = entry.load()
    # A module that exits must not take the list of profiles with it.
    except (Exception, SystemExit) as error:
        raise ProfileBroken(
            f"Profile {source} cannot be imported from {entry.value}: "
            f"{type(error).__name__}: {error}",
            hint=_repair(entry),
        ) from error
    if not isinstance(profile, Profile):
        raise ProfileBroken(
            f"Profile {source} is a {type(profile).__name__}: {entry.value}",
            hint="Let the entry point name a trunkline.profiles.Profile.",
        )
    if profile.name != name:
        raise ProfileBroken(
            f"Profile {source} calls itself {profile.name!r}",
            hint="Give the entry point the name of the profile.",
        )
    return profile


def distribution(name: str) -> str:
    """Return the distribution and version that provide a profile, such as ``shop 1.0``."""
    return _provider(_entry(name))


def _entry(name: str) -> EntryPoint:
    entries = tuple(entry_points(group=GROUP, name=name))
    if not entries:
        known = ", ".join(names())
        raise UnknownProfile(
            f"There is no profile {name!r}; there are: {known}"
            if known
            else f"There is no profile {name!r}: no profiles are installed",
            hint=None if _has_ours() else _OURS,
        )
    if len(entries) > 1:
        providers = sorted(map(_provider, entries))
        raise DuplicateProfile(
            f"Profile {name!r} is provided {len(entries)} times: by {' and by '.join(providers)}",
            hint=f"Uninstall all but one, as with: {_uninstall(entries[-1])}",
        )
    return entries[0]


def _has_ours() -> bool:
    return any(entry.value.startswith("trunkline_profiles.") for entry in entry_points(group=GROUP))


def _provider(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value


def _repair(entry: EntryPoint) -> str:
    return f"Install what it needs, or remove it with: {_uninstall(entry)}"


def _uninstall(entry: EntryPoint) -> str:
    return f"pip uninstall {entry.dist.name if entry.dist else entry.module}"
