"""``trunkline worker bench.soak.app:app``: the application of the other measures, with a clock.

A claim is timed in the worker itself, around its call, because jobs wait for all of that, including
the network and a busy event loop. The server's statistics have only means and maxima, and a
separate claim of ours would keep a position that differs from the workers'. The timing costs two
clock readings per call and nothing per job.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from bench.apps.noop import app
from bench.soak.calls import VARIABLE, Kind, Notes
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.db.lasting import CALL_TIMEOUT, LastingConnection

__all__ = ["app"]

_COMPLETE = work.complete("", [], []).sql

_notes = Notes(Path(os.environ[VARIABLE]))
_run = LastingConnection.run
_complete = work.complete
# By identity of the call: how many jobs it ends, which its packed parameters do not show.
_ending: dict[int, int] = {}


def _counted(worker: str, jobs: Sequence[UUID], *more: Any, **named: Any) -> Call[Any]:
    call = _complete(worker, jobs, *more, **named)
    _ending[id(call)] = len(jobs)
    return call


async def _timed(
    self: LastingConnection, call: Call[Any], *, patience: float = CALL_TIMEOUT
) -> Any:
    kind = _kind(call, patience)
    if kind is None:
        return await _run(self, call, patience=patience)
    jobs = -1
    begin = time.monotonic_ns()
    try:
        answer = await _run(self, call, patience=patience)
        # A completion returns the jobs that it did not end.
        ended = kind is Kind.COMPLETE
        jobs = _ending[id(call)] - len(answer) if ended else len(answer.jobs)
    finally:
        end = time.monotonic_ns()
        _ending.pop(id(call), None)
        _notes.add(end, end - begin, kind, jobs)
    return answer


def _kind(call: Call[Any], patience: float) -> Kind | None:
    if call.sql == _COMPLETE:
        return Kind.COMPLETE
    if call.sql == work.CLAIM:
        # Only the rescan has a longer patience, because nothing waits for it.
        return Kind.CLAIM if patience == CALL_TIMEOUT else Kind.LOOK
    return None


LastingConnection.run = _timed  # type: ignore[method-assign]
work.complete = _counted
