"""The forms that are compared: each claims a batch and completes it on its own connections.

Every form decodes each payload into a typed value, as a worker does. They differ in how the work is
divided between server, driver and client.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, LiteralString, Protocol
from uuid import UUID

import asyncpg  # type: ignore[import-untyped, unused-ignore]
import msgspec
import psycopg
from psycopg.conninfo import conninfo_to_dict

from trunkline.db.calls import work
from trunkline.db.runner import run_async

__all__ = ["FORMS", "QUEUE", "WORKER", "Batch", "Form"]

QUEUE = "hot_path"
WORKER = "bench"

_ALL: LiteralString = """job_id, attempt, task, queue, priority, payload::text, tenant,
  correlation_id, tags, failures, deferrals, max_attempts, created_at, run_at, claimed_at,
  lease_expires_at, hard_deadline, last_error::text, position::text"""
_LEAN: LiteralString = """job_id, attempt, task, queue, payload::text, tenant, correlation_id, tags,
  failures, max_attempts, lease_expires_at, hard_deadline, last_error::text, position::text"""
_DOCUMENT: LiteralString = """json_agg(json_build_array(job_id, attempt, task, queue, payload,
  tenant, correlation_id, tags, failures, max_attempts, lease_expires_at, hard_deadline, last_error,
  position::text))::text"""

_CLAIM: LiteralString = """select {columns} from trunkline.claim(p_worker => {0}::text,
  p_queues => {1}::text[], p_limit => {2}::integer, p_position => {3}::text::jsonb)"""
_COMPLETE: LiteralString = """select job_id, attempt, verdict from trunkline.complete(
  p_worker => {0}::text, p_jobs => {1}::uuid[], p_attempts => {2}::integer[])"""
# Returns no rows if all verdicts are ok.
_QUIET: LiteralString = _COMPLETE + " where verdict <> 'ok'"

_TEXT = ("%s", "%s", "%s", "%s")
_BINARY = ("%b", "%b", "%b", "%s")
_NUMBERED = ("$1", "$2", "$3", "$4")


class _Payload(msgspec.Struct):
    number: int
    text: str


class _Document(msgspec.Struct, array_like=True):
    job_id: str | None
    attempt: int | None
    task: str | None
    queue: str | None
    payload: msgspec.Raw
    tenant: str | None
    correlation_id: str | None
    tags: list[str] | None
    failures: int | None
    max_attempts: int | None
    lease_expires_at: str | None
    hard_deadline: datetime | None
    last_error: msgspec.Raw
    position: str | None


_decode_payload = msgspec.json.Decoder(_Payload).decode
_decode_document = msgspec.json.Decoder(list[_Document]).decode


class Batch:
    """Claimed jobs as a worker stores them, and the position for the next claim."""

    __slots__ = ("attempts", "ids", "jobs", "position")

    def __init__(
        self, jobs: list[Any], ids: list[Any], attempts: list[int], position: str | None
    ) -> None:
        self.jobs = jobs
        self.ids = ids
        self.attempts = attempts
        self.position = position


class Form(Protocol):
    """One way to claim and complete."""

    # Server processes of the two connections: claims, completions.
    backends: tuple[int, int]

    async def open(self, dsn: str) -> None: ...

    async def claim(self, limit: int, position: str) -> Batch: ...

    async def complete(self, batch: Batch) -> None: ...

    async def close(self) -> None: ...


def _batch_of_rows(rows: Sequence[Any], payload: int) -> Batch:
    position = rows[-1][-1]
    if rows[-1][0] is None:
        rows = rows[:-1]
    jobs = [(row, _decode_payload(row[payload])) for row in rows]
    return Batch(jobs, [row[0] for row in rows], [row[1] for row in rows], position)


class _Psycopg:
    """psycopg with rows, text or binary."""

    def __init__(self, columns: LiteralString, *, binary: bool, quiet: bool, payload: int) -> None:
        marks = _BINARY if binary else _TEXT
        self._claim = _CLAIM.format(*marks, columns=columns)
        self._complete = (_QUIET if quiet else _COMPLETE).format(*marks)
        self._binary = binary
        self._payload = payload

    async def open(self, dsn: str) -> None:
        self._connections = [
            await psycopg.AsyncConnection.connect(dsn, autocommit=True, prepare_threshold=0)
            for _ in range(2)
        ]
        self._cursors = [each.cursor(binary=self._binary) for each in self._connections]
        self.backends = (
            self._connections[0].info.backend_pid,
            self._connections[1].info.backend_pid,
        )

    async def claim(self, limit: int, position: str) -> Batch:
        cursor = self._cursors[0]
        await cursor.execute(self._claim, (WORKER, [QUEUE], limit, position))
        return _batch_of_rows(await cursor.fetchall(), self._payload)

    async def complete(self, batch: Batch) -> None:
        await self._cursors[1].execute(self._complete, (WORKER, batch.ids, batch.attempts))
        await self._cursors[1].fetchall()

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


class _PsycopgDocument(_Psycopg):
    """psycopg with the batch as one JSON document, and ids sent back as text."""

    def __init__(self) -> None:
        super().__init__(_DOCUMENT, binary=False, quiet=True, payload=4)

    async def claim(self, limit: int, position: str) -> Batch:
        cursor = self._cursors[0]
        await cursor.execute(self._claim, (WORKER, [QUEUE], limit, position))
        row = await cursor.fetchone()
        rows = _decode_document(row[0] if row else "[]")
        last = rows[-1].position
        if rows[-1].job_id is None:
            rows.pop()
        jobs = [(each, _decode_payload(each.payload)) for each in rows]
        return Batch(jobs, [r.job_id for r in rows], [r.attempt or 0 for r in rows], last)

    async def complete(self, batch: Batch) -> None:
        ids = "{" + ",".join(batch.ids) + "}"
        attempts = "{" + ",".join(map(str, batch.attempts)) + "}"
        await self._cursors[1].execute(self._complete, (WORKER, ids, attempts))
        await self._cursors[1].fetchall()


class _Calls(_Psycopg):
    """The form that the worker uses: the calls of ``trunkline.db``."""

    def __init__(self) -> None:
        super().__init__(_LEAN, binary=True, quiet=True, payload=4)

    async def claim(self, limit: int, position: str) -> Batch:
        call = work.claim(WORKER, [QUEUE], limit, None, position)
        claimed = await run_async(self._connections[0], call)
        jobs = [(job, _decode_payload(job.payload)) for job in claimed.jobs]
        return Batch(
            jobs,
            [job.job_id for job in claimed.jobs],
            [job.attempt for job in claimed.jobs],
            claimed.position,
        )

    async def complete(self, batch: Batch) -> None:
        ids: list[UUID] = batch.ids
        await run_async(self._connections[1], work.complete(WORKER, ids, batch.attempts))


class _Asyncpg:
    """asyncpg, whose results are always binary."""

    async def open(self, dsn: str) -> None:
        parts = conninfo_to_dict(dsn)
        self._connections = [
            await asyncpg.connect(
                host=parts.get("host"),
                port=parts.get("port"),
                user=parts.get("user"),
                password=parts.get("password"),
                database=parts.get("dbname"),
            )
            for _ in range(2)
        ]
        self._claim = await self._connections[0].prepare(_CLAIM.format(*_NUMBERED, columns=_LEAN))
        self._complete = await self._connections[1].prepare(_QUIET.format(*_NUMBERED))
        self.backends = (
            self._connections[0].get_server_pid(),
            self._connections[1].get_server_pid(),
        )

    async def claim(self, limit: int, position: str) -> Batch:
        return _batch_of_rows(await self._claim.fetch(WORKER, [QUEUE], limit, position), 4)

    async def complete(self, batch: Batch) -> None:
        await self._complete.fetch(WORKER, batch.ids, batch.attempts)

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()


FORMS: dict[str, tuple[str, Any]] = {
    "text": (
        "psycopg, text rows, all columns",
        lambda: _Psycopg(_ALL, binary=False, quiet=False, payload=5),
    ),
    "binary": (
        "psycopg, binary rows, all columns",
        lambda: _Psycopg(_ALL, binary=True, quiet=False, payload=5),
    ),
    "lean": (
        "psycopg, binary rows, few columns, quiet",
        lambda: _Psycopg(_LEAN, binary=True, quiet=True, payload=4),
    ),
    "calls": ("the same through trunkline.db", _Calls),
    "document": ("psycopg, one JSON document, quiet", _PsycopgDocument),
    "asyncpg": ("asyncpg, few columns, quiet", _Asyncpg),
}
