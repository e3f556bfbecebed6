"""Keeps the wake-ups of a profile going where no cron of the database does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from trunkline.errors import DatabaseProblem, DatabaseUnreachable, ProfileError
from trunkline.profiles.profile import Profile
from trunkline.profiles.sessions import session

__all__ = ["keep_waking"]

# Seconds. The database decides when a wake-up is due; this is only how often it is asked.
_LOOK_EVERY: Final = 5.0


def keep_waking(
    dsn: str,
    profile: Profile,
    *,
    schema: str | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Ask for the wake-up that is due, forever; while the server is away, try again."""
    if profile.wake_up is None:
        raise ProfileError(f"Profile {profile.name} has no wake-ups")
    while True:
        try:
            with session(dsn, profile, schema=schema) as opened:
                ((called,),) = opened.ask(profile.wake_up)
            if called or once:
                say(called or "nothing is due")
        except (DatabaseProblem, DatabaseUnreachable) as error:
            if once:
                raise
            say(f"{error}; trying again")
        if once:
            return
        time.sleep(_LOOK_EVERY)
