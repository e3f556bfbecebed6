"""Finds jobs by task and payload, and lists the others for the message of an assertion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from trunkline.client import Task
from trunkline.errors import PayloadMismatch
from trunkline.model import Job
from trunkline.model.codec import encode

__all__ = ["Expectation", "listing"]

_LONGEST_PAYLOAD = 200
_MOST_LINES = 20


class Expectation:
    """The task of a job, and a part of its payload."""

    def __init__(self, task: Task[..., Any] | str, payload: Mapping[str, Any]) -> None:
        self._name = task if isinstance(task, str) else task.name
        # Jobs under an old name of a task count as its jobs.
        self._names = (task,) if isinstance(task, str) else task.names
        self._schema = None if isinstance(task, str) else task.schema
        if self._schema is not None:
            unknown = payload.keys() - set(self._schema.names)
            if unknown:
                raise PayloadMismatch(
                    f"{self._name} has no parameter {', '.join(sorted(unknown))}; it has "
                    + (", ".join(self._schema.names) or "none")
                )
        self._payload = {name: _as_json(value) for name, value in payload.items()}

    def __str__(self) -> str:
        return f"{self._name} {_shown(self._payload)}" if self._payload else self._name

    def among(self, jobs: Sequence[Job]) -> list[Job]:
        """Return the jobs that match, in their order."""
        return [job for job in jobs if job.task in self._names and self._fits(job.payload or {})]

    def _fits(self, payload: Mapping[str, Any]) -> bool:
        if self._schema is not None:
            # For missing parameters, the handler uses its defaults.
            missing = self._payload.keys() - payload.keys()
            defaults = self._schema.with_defaults({})
            payload = {**{name: _as_json(defaults.get(name)) for name in missing}, **payload}
        return _contains(payload, self._payload)


def listing(jobs: Sequence[Job]) -> str:
    """Return one line for each job, for the message of a failed assertion."""
    if not jobs:
        return "  no job is waiting"
    lines = [f"  {job.task} {_shown(job.payload or {})} ({_where(job)})" for job in jobs]
    more = len(lines) - _MOST_LINES
    return "\n".join(lines[:_MOST_LINES] + ([f"  and {more} more"] if more > 0 else []))


def _where(job: Job) -> str:
    parts = [str(job.state), f"queue {job.queue}"]
    if job.state == "scheduled":
        parts[0] += f" for {job.run_at:%Y-%m-%d %H:%M:%S}"
    if job.priority:
        parts.append(f"priority {job.priority}")
    if job.tenant:
        parts.append(f"tenant {job.tenant}")
    if job.failures:
        parts.append(f"{job.failures} failures")
    return ", ".join(parts)


def _shown(payload: Mapping[str, Any]) -> str:
    text = json.dumps(payload, ensure_ascii=False)
    return text if len(text) <= _LONGEST_PAYLOAD else text[: _LONGEST_PAYLOAD - 1] + "…"


def _as_json(value: Any) -> Any:
    """Return a value as the database would return it."""
    try:
        return msgspec.json.decode(encode(value))
    except TypeError as error:
        raise PayloadMismatch(f"No payload can hold {value!r}: {error}") from error


def _contains(whole: Any, part: Any) -> bool:
    if isinstance(whole, Mapping) and isinstance(part, Mapping):
        return all(name in whole and _contains(whole[name], part[name]) for name in part)
    return bool(whole == part and isinstance(whole, bool) == isinstance(part, bool))
