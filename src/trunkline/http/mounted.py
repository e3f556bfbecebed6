"""Finds routes of profiles by the entry points of installed distributions.

[project.entry-points."trunkline.http"]
shop = "shop_profile.http:ROUTES"
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Final

from trunkline.errors import ProfileBroken, UnknownProfile
from trunkline.http.routing import Routes

__all__ = ["GROUP", "mounted_routes"]

GROUP: Final = "trunkline.http"


def mounted_routes(names: Sequence[str] | None = None) -> list[Routes]:
    """Import the routes of these profiles, or of all that provide some."""
    known = {entry.name: entry for entry in entry_points(group=GROUP)}
    if names is not None and (unknown := sorted(set(names) - known.keys())):
        raise UnknownProfile(
            f"No distribution provides routes of {', '.join(unknown)}; there are: "
            f"{', '.join(sorted(known)) or 'none'}",
            hint="Install it, or change TRUNKLINE_API_PROFILES.",
        )
    return [_load(known[name]) for name in (sorted(known) if names is None else names)]


def _load(entry: EntryPoint) -> Routes:
    provider = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
    try:
        routes = entry.load()
    except (Exception, SystemExit) as error:
        raise ProfileBroken(
            f"The routes {entry.name!r} of {provider} cannot be imported from {entry.value}: "
            f"{type(error).__name__}: {error}",
            hint="Install what they need, or leave them out of TRUNKLINE_API_PROFILES.",
        ) from error
    if not isinstance(routes, Routes):
        raise ProfileBroken(
            f"The routes {entry.name!r} of {provider} are a {type(routes).__name__}",
            hint="Let the entry point name a trunkline.http.Routes.",
        )
    return routes
