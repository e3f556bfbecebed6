"""The two sides of the comparison as a worker sees them: claim a batch, complete a batch."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol
from uuid import UUID

import psycopg
from psycopg.rows import tuple_row

from bench.fill import connect
from bench.internals import plain

__all__ = [
    "BATCH",
    "FunctionSide",
    "PlainSide",
    "Side",
    "cpu_seconds",
    "other_backends",
    "process_cpu_seconds",
]

BATCH = 100

_CLAIM = """
select
  job_id, attempt, task, queue, priority, payload, tenant, correlation_id, tags, failures,
  deferrals, max_attempts, created_at, run_at, claimed_at, lease_expires_at, hard_deadline,
  last_error, position::text
from trunkline.claim(
  p_worker => %(worker)b, p_queues => %(queues)b, p_limit => %(limit)b,
  p_position => %(position)s::jsonb
)
"""

_COMPLETE = """
select job_id, attempt, verdict
from trunkline.complete(p_worker => %(worker)b, p_jobs => %(jobs)b, p_attempts => %(attempts)b)
"""


class Side(Protocol):
    """One way to claim and complete."""

    connection: psycopg.Connection

    def claim(self) -> tuple[list[UUID], list[int]]:
        """Claim a batch: the jobs and their attempts."""
        ...

    def complete(self, jobs: Sequence[UUID], attempts: Sequence[int]) -> int:
        """Complete a batch; return its number of jobs."""
        ...

    def close(self) -> None: ...


class FunctionSide:
    """Calls the functions, and keeps the position as a worker does: as opaque text."""

    def __init__(self, dsn: str, worker: str, queue: str, *, keep: bool = True) -> None:
        self.connection = connect(dsn)
        self._cursor = self.connection.cursor(binary=True, row_factory=tuple_row)
        self._worker = worker
        self._claim: dict[str, object] = {
            "worker": worker,
            "queues": [queue],
            "position": "{}" if keep else None,
        }
        # The positions of the jobs of the last claim.
        self.tenants: list[str | None] = []

    def claim(self, limit: int = BATCH) -> tuple[list[UUID], list[int]]:
        rows = self._cursor.execute(_CLAIM, self._claim | {"limit": limit}).fetchall()
        if rows and rows[-1][18] is not None:
            self._claim["position"] = rows[-1][18]
            if rows[-1][0] is None:
                rows.pop()
        self.tenants = [row[6] for row in rows]
        return [row[0] for row in rows], [row[1] for row in rows]

    def complete(self, jobs: Sequence[UUID], attempts: Sequence[int]) -> int:
        answer = self._cursor.execute(
            _COMPLETE, {"worker": self._worker, "jobs": jobs, "attempts": attempts}
        ).fetchall()
        return sum(1 for row in answer if row[2] == "ok")

    def close(self) -> None:
        self.connection.close()


class PlainSide:
    """Runs plain prepared statements, starting after the last claimed job."""

    def __init__(self, dsn: str, worker: str, queue: str) -> None:
        self.connection = connect(dsn)
        self.connection.execute(plain.SESSION, prepare=False)
        self._cursor = self.connection.cursor(binary=True, row_factory=tuple_row)
        self._worker = worker
        self._floors = [0]
        self._claim: Mapping[str, object] = {
            "worker": worker,
            "queues": [queue],
            "lanes": [0],
            "floors": self._floors,
        }

    def claim(self) -> tuple[list[UUID], list[int]]:
        rows = self._cursor.execute(plain.CLAIM, self._claim).fetchall()
        if rows:
            self._floors[0] = rows[-1][19]
        return [row[0] for row in rows], [row[1] for row in rows]

    def complete(self, jobs: Sequence[UUID], attempts: Sequence[int]) -> int:
        answer = self._cursor.execute(
            plain.COMPLETE, {"worker": self._worker, "jobs": jobs, "attempts": attempts}
        ).fetchall()
        return len(answer)

    def close(self) -> None:
        self.connection.close()


def cpu_seconds(connection: psycopg.Connection) -> float:
    """Return the processor time of its server process; NaN if that runs elsewhere."""
    return process_cpu_seconds(connection.info.backend_pid)


def process_cpu_seconds(pid: int) -> float:
    """The same for any process of this machine."""
    try:
        text = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii")
    except OSError:
        return float("nan")
    return int(text.split()[0]) / 1e9


def other_backends(connection: psycopg.Connection) -> list[int]:
    """The server processes of all other clients of this database."""
    rows = connection.execute(
        """
        select a.pid
        from pg_stat_activity as a
        where a.datname = current_database() and a.backend_type = 'client backend'
          and a.pid <> pg_backend_pid()
        """
    ).fetchall()
    return [pid for (pid,) in rows]
