"""Keeps the wake-ups of the profile going where no cron of the database does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from trunkline.errors import DatabaseProblem, DatabaseUnreachable
from trunkline.profiles import installer
from trunkline.profiles.profile import schema_name
from trunkline_profiles.executor import PROFILE

__all__ = ["keep_waking"]

# Seconds. The database decides when a wake-up is due; this is only how often it is asked.
_LOOK_EVERY: Final = 5.0


def keep_waking(
    dsn: str,
    *,
    schema: str | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Ask for the wake-up that is due, for ever; while the server is away, try again."""
    target = schema_name(schema or PROFILE.schema)
    while True:
        try:
            with installer.session(dsn, PROFILE, target) as connection:
                ((called,),) = installer.ask(connection, PROFILE, "wake", target)
            if called or once:
                say(called or "nothing is due")
        except (DatabaseProblem, DatabaseUnreachable) as error:
            if once:
                raise
            say(f"{error}; trying again")
        if once:
            return
        time.sleep(_LOOK_EVERY)
