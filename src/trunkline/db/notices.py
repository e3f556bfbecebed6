"""Notices that the engine sends to a client along with its results."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any, Final
from uuid import UUID

import psycopg

__all__ = ["heed", "log_notice", "on_notice", "task_in_notice"]

# The SQLSTATEs that note_late.sql and note_other_task.sql send.
_LATE: Final = "01TL0"
_OTHER_TASK: Final = "01TL1"
# Seconds between log lines: a task that calls late once usually does so every time.
_EVERY: Final = 3600.0

_limits = logging.getLogger("trunkline.limits")
_client = logging.getLogger("trunkline.client")

# The tasks of jobs that were returned for a request of another task, for the handles of the call.
# The oldest entries are dropped.
_other_tasks: dict[str, str] = {}
_MOST_OTHER_TASKS: Final = 10_000
_other_tasks_lock: Final = threading.Lock()

# The monotonic time of the last log line by kind of notice, task, and limit or other task.
_logged: dict[tuple[str, str, str], float] = {}


def heed(connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    """Log the engine's notices on this connection."""
    connection.add_notice_handler(on_notice)


def on_notice(notice: psycopg.errors.Diagnostic) -> None:
    """Log a notice that psycopg received, if it is the engine's."""
    log_notice(notice.sqlstate, notice.message_detail)


def log_notice(sqlstate: str | None, detail: str | None) -> None:
    """Log a notice by its SQLSTATE and JSON detail, if it is the engine's."""
    write = _WRITERS.get(sqlstate or "")
    if write is None:
        return
    try:
        write(json.loads(detail or ""))
    except (ValueError, KeyError, TypeError):
        # A later version of the schema sent it. The database counts late attempts anyway.
        return


def task_in_notice(job: UUID) -> str | None:
    """Return the task of a job that was returned for a request of another task, or None."""
    return _other_tasks.get(str(job)) if _other_tasks else None


def _log_late(detail: dict[str, Any]) -> None:
    task, limit, seconds = str(detail["task"]), str(detail["limit"]), int(detail["seconds"])
    if not _is_new(_LATE, task, limit):
        return
    _limits.warning(
        "an attempt of %s ended %d s after it was charged to limit %s, without ctx.http, ctx.grant"
        " or ctx.settle: a late call may have exceeded the limit. See `trunkline limits show %s`,"
        " which counts further ones; they are not logged for an hour",
        task,
        seconds,
        limit,
        limit,
        extra={"task": task, "limit": limit},
    )


def _log_other_task(detail: dict[str, Any]) -> None:
    task, job, job_task = str(detail["task"]), str(detail["job"]), str(detail["job_task"])
    with _other_tasks_lock:
        if len(_other_tasks) >= _MOST_OTHER_TASKS:
            del _other_tasks[next(iter(_other_tasks))]
        _other_tasks[job] = job_task
    if not _is_new(_OTHER_TASK, task, job_task):
        return
    _client.warning(
        "enqueuing %s returned job %s of task %s, which holds the same unique key: within profile"
        " %s a key counts for all tasks. Include the name of the task in the key; further ones are"
        " not logged for an hour",
        task,
        job,
        job_task,
        detail["profile"],
        extra={"task": task, "job": job},
    )


def _is_new(kind: str, task: str, other: str) -> bool:
    now = time.monotonic()
    if now - _logged.get((kind, task, other), -_EVERY) < _EVERY:
        return False
    _logged[kind, task, other] = now
    return True


_WRITERS: Final = {_LATE: _log_late, _OTHER_TASK: _log_other_task}
