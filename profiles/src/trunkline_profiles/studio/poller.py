"""A worker that polls the profile's functions, as workers in other languages do.

`trunkline worker` does the same with less traffic. This one shows every rule that such a worker
needs: unique ids, five slots that claim again when they are free, heartbeats, waits that grow while
there is nothing to do, and completions that are repeated instead of the work.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from uuid import UUID

import psycopg
from psycopg.rows import class_row
from psycopg.types.json import Jsonb

__all__ = ["Claimed", "Desk", "Idle", "Poller", "Result", "SqlDesk", "new_worker_id"]

# Seconds of the idle waits; the last one repeats.
WAITS: Final = (5.0, 10.0, 20.0, 30.0)
ERROR_WAIT: Final = 10.0
HEARTBEAT: Final = 30.0
SLOTS: Final = 5
_JITTER: Final = 0.2


@dataclass(frozen=True, slots=True)
class Claimed:
    """A task as claim_tasks returns it."""

    id: UUID
    job_id: UUID
    task_type: str
    sequence: int
    input: dict[str, Any]
    attempts: int
    max_attempts: int
    attempt: int


@dataclass(frozen=True, slots=True)
class Result:
    """The metadata of a task, and the files that it uploaded."""

    output: Mapping[str, Any]
    artifacts: Sequence[Mapping[str, Any]] = ()


class Desk(Protocol):
    """The four calls of a worker. Each raises an error if the call failed."""

    def claim(self, count: int) -> Sequence[Claimed]: ...

    def heartbeat(self, task: Claimed) -> bool: ...

    def complete(self, task: Claimed, result: Result) -> bool: ...

    def fail(self, task: Claimed, error: str) -> str | None: ...


def new_worker_id(prefix: str | None = None) -> str:
    """An id that no other process has, not even one with the same host name and process id."""
    return f"{prefix or socket.gethostname()}-{os.getpid()}-{uuid.uuid4()}"


class Idle:
    """The waits of a worker that finds nothing: 5, 10, 20, then 30 seconds, with jitter."""

    def __init__(self, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._waits = self._from_start()

    def reset(self) -> None:
        """Begin with the shortest wait again, after work."""
        self._waits = self._from_start()

    def next(self) -> float:
        """The next wait, a fifth more or less."""
        return next(self._waits) * (1 + _JITTER * (2 * self._draw() - 1))

    @staticmethod
    def _from_start() -> Iterator[float]:
        yield from WAITS
        while True:
            yield WAITS[-1]


class SqlDesk:
    """The calls as SQL, over one connection that is opened again after an error."""

    def __init__(self, dsn: str, worker: str, types: Sequence[str] | None = None) -> None:
        self.worker = worker
        self._dsn = dsn
        self._types = None if types is None else list(types)
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None

    def claim(self, count: int) -> Sequence[Claimed]:
        """Claim up to so many tasks."""
        query = (
            "select id, job_id, task_type, sequence, input, attempts, max_attempts, attempt"
            " from studio.claim_tasks(%s, %s, %s)"
        )
        with self._lock, self._open().cursor(row_factory=class_row(Claimed)) as cursor:
            return cursor.execute(query.encode(), (self.worker, count, self._types)).fetchall()

    def heartbeat(self, task: Claimed) -> bool:
        """Extend the lease; False means stop."""
        query = "select studio.heartbeat_task(%s, %s, %s)"
        return bool(self._value(query, task.id, self.worker, task.attempt))

    def complete(self, task: Claimed, result: Result) -> bool:
        """Complete the task and publish its files."""
        return bool(
            self._value(
                "select studio.complete_task(%s, %s, %s, %s, %s)",
                *(task.id, self.worker, Jsonb(dict(result.output)), task.attempt),
                Jsonb([dict(artifact) for artifact in result.artifacts]),
            )
        )

    def fail(self, task: Claimed, error: str) -> str | None:
        """End the attempt as failed; returns the new status."""
        status: str | None = self._value(
            "select studio.fail_task(%s, %s, %s, %s)", task.id, self.worker, error, task.attempt
        )
        return status

    def prepare(self, task: Claimed, kind: str, name: str) -> str:
        """Return where a file of the task is uploaded."""
        path: str = self._value(
            "select studio.prepare_artifact(%s, %s, %s, %s, %s)",
            *(task.id, self.worker, kind, name, task.attempt),
        )
        return path

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _value(self, query: str, *arguments: Any) -> Any:
        with self._lock:
            row = self._open().execute(query.encode(), arguments).fetchone()
        return None if row is None else row[0]

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
        return self._connection


@dataclass(slots=True)
class _Held:
    """A task that runs here."""

    task: Claimed
    # Set when the task was lost or cancelled: its work is discarded.
    stopped: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)


Work = Callable[[Claimed, Callable[[], bool]], Result]


class Poller:
    """Claims tasks, runs them in five threads, and polls with growing waits while idle.

    ``work`` receives the task, and a function that returns true when it should stop.
    """

    def __init__(
        self,
        desk: Desk,
        work: Work,
        *,
        slots: int = SLOTS,
        heartbeat: float = HEARTBEAT,
        idle: Idle | None = None,
        pause: Callable[[float], Any] | None = None,
    ) -> None:
        self._desk = desk
        self._work = work
        self._slots = slots
        self._heartbeat = heartbeat
        self._idle = idle or Idle()
        self._stopping = threading.Event()
        self._pause = pause or self._stopping.wait

    def stop(self) -> None:
        """Claim nothing more; `run` returns when the running tasks have ended."""
        self._stopping.set()

    def run(self) -> None:
        """Work until stopped."""
        with ThreadPoolExecutor(self._slots) as runners:
            running: set[Future[None]] = set()
            while not self._stopping.is_set():
                running = {future for future in running if not future.done()}
                try:
                    claimed = self._desk.claim(self._slots - len(running))
                except Exception:  # noqa: BLE001 - whatever it was, the next round may succeed
                    self._pause(ERROR_WAIT)
                    continue
                running |= {runners.submit(self._run, _Held(task)) for task in claimed}
                if claimed:
                    self._idle.reset()
                if len(running) == self._slots:
                    # The first free slot claims again; it does not wait for the others.
                    wait(running, return_when=FIRST_COMPLETED)
                elif not claimed:
                    self._pause(self._idle.next())

    def _run(self, held: _Held) -> None:
        beat = threading.Thread(target=self._beat, args=(held,), daemon=True)
        beat.start()
        try:
            result = self._work(held.task, held.stopped.is_set)
        except Exception as error:  # noqa: BLE001 - the reason goes into the database
            problem = f"{type(error).__name__}: {error}"
            self._end(held, lambda: self._desk.fail(held.task, problem))
        else:
            # Only the completion is repeated, never the work.
            self._end(held, lambda: self._desk.complete(held.task, result))
        finally:
            held.ended.set()
            beat.join()

    def _end(self, held: _Held, call: Callable[[], Any]) -> None:
        while not held.stopped.is_set():
            try:
                call()
            except psycopg.OperationalError:
                self._pause(ERROR_WAIT)
            except psycopg.Error as error:
                # A refusal: the same call would be refused again.
                with suppress(psycopg.Error):
                    self._desk.fail(held.task, str(error))
                return
            else:
                return

    def _beat(self, held: _Held) -> None:
        due = time.monotonic() + self._heartbeat
        while not held.ended.wait(max(0.0, due - time.monotonic())):
            due += self._heartbeat
            with suppress(psycopg.OperationalError):
                if not self._desk.heartbeat(held.task):
                    held.stopped.set()
                    return
