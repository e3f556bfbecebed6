"""Log lines as JSON or as readable text, each with the job to which it belongs."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TextIO

from trunkline.telemetry.text import escaped, escaped_json, escaped_lines, unsigned

# Only for types: `trunkline --help` imports this module.
if TYPE_CHECKING:
    from trunkline.model import ClaimedJob

__all__ = ["JobLogger", "chosen_logging", "enter_job", "set_up_logging"]

# The job whose handler runs in this task or thread. Lines of the user's loggers include it too.
_job: ContextVar[ClaimedJob | None] = ContextVar("trunkline_job", default=None)

# Arguments of `set_up_logging`, for the processes of handlers.
_chosen: tuple[str, str] | None = None

_STANDARD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_COLOURS: Final = {"WARNING": "\x1b[33m", "ERROR": "\x1b[31m", "CRITICAL": "\x1b[31;1m"}


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """Adds job, attempt, task and correlation id to every line."""

    def __init__(self, job: ClaimedJob) -> None:
        super().__init__(logging.getLogger(f"trunkline.task.{job.task}"), _fields(job))

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the job's fields to the caller's extra fields."""
        kwargs["extra"] = {**(self.extra or {}), **(kwargs.get("extra") or {})}
        return msg, kwargs


def set_up_logging(form: str, level: str = "info", stream: TextIO | None = None) -> None:
    """Write the log of the whole process to standard error, in the format "json" or "console"."""
    global _chosen  # noqa: PLW0603 - as the root logger is
    _chosen = (form, level)
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Json() if form == "json" else _Console(colour=target.isatty()))
    handler.addFilter(_add_job)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def chosen_logging() -> tuple[str, str] | None:
    """Return the format and level passed to `set_up_logging`, or None if it was not called."""
    return _chosen


def _add_job(record: logging.LogRecord) -> bool:
    job = _job.get()
    if job is not None and not hasattr(record, "job_id"):
        for name, value in _fields(job).items():
            setattr(record, name, value)
    return True


def _fields(job: ClaimedJob) -> dict[str, Any]:
    fields: dict[str, Any] = {"job_id": str(job.job_id), "attempt": job.attempt, "task": job.task}
    if job.correlation_id is not None:
        fields["correlation_id"] = job.correlation_id
    return fields


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return escaped_json(unsigned(json.dumps(line, default=str, ensure_ascii=False)))


class _Console(logging.Formatter):
    def __init__(self, *, colour: bool) -> None:
        super().__init__()
        self._colour = colour

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone()
        level = f"{record.levelname.lower():8}"
        if self._colour and record.levelname in _COLOURS:
            level = f"{_COLOURS[record.levelname]}{level}\x1b[0m"
        extra = " ".join(f"{name}={value}" for name, value in _extra(record).items())
        line = f"{at:%H:%M:%S}.{int(record.msecs):03} {level} {escaped(record.getMessage())}"
        if extra:
            line += f"  [{escaped(extra)}]"
        if record.exc_info:
            # Indented, so that no line of the traceback looks like a record.
            line += "\n" + escaped_lines(self.formatException(record.exc_info), "  ")
        return line


def enter_job(job: ClaimedJob) -> None:
    """Add the job to all later log lines of this task or thread; cheaper than a context manager."""
    _job.set(job)
