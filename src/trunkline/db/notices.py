"""Notices that the engine sends to a client in addition to its results."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

import psycopg

__all__ = ["heed"]

# The SQLSTATE that note_late.sql sends.
_LATE: Final = "01TL0"
# Seconds between log lines: a task that calls late once usually does so every time.
_EVERY: Final = 3600.0

_log = logging.getLogger("trunkline.limits")

# When each task and limit was last logged, by monotonic time.
_logged: dict[tuple[str, str], float] = {}


def heed(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Log the engine's notices on this connection."""
    connection.add_notice_handler(_on_notice)


def _on_notice(notice: psycopg.errors.Diagnostic) -> None:
    if notice.sqlstate != _LATE:
        return
    try:
        detail = json.loads(notice.message_detail or "")
        task, limit, seconds = str(detail["task"]), str(detail["limit"]), int(detail["seconds"])
    except (ValueError, KeyError, TypeError):
        # From a later version of the schema. The attempt is still counted in the database.
        return
    now = time.monotonic()
    if now - _logged.get((task, limit), -_EVERY) < _EVERY:
        return
    _logged[task, limit] = now
    _log.warning(
        "an attempt of %s ended %d s after it was charged to limit %s, without ctx.http, ctx.grant"
        " or ctx.settle: a call it made late may have exceeded the limit. See `trunkline limits"
        " show %s`; further ones are only counted there for an hour",
        task,
        seconds,
        limit,
        limit,
        extra={"task": task, "limit": limit},
    )
