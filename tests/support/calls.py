"""Short calls of the engine's functions on one connection, for tests that need many of them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

__all__ = ["Attempt", "Calls", "Claim", "Position", "Verdict"]

Position = dict[str, Any]


class Attempt(NamedTuple):
    """An attempt that a worker holds or held."""

    job: UUID
    number: int
    worker: str


class Claim(NamedTuple):
    """The jobs of a claim in its order, and the position that it returned."""

    rows: list[Any]
    position: Position | None

    @property
    def jobs(self) -> list[UUID]:
        return [row.job_id for row in self.rows]

    @property
    def attempts(self) -> list[Attempt]:
        return [Attempt(row.job_id, row.attempt, row.worker) for row in self.rows]


class Verdict(NamedTuple):
    """The answer of a batch call for one attempt."""

    job: UUID
    attempt: int
    verdict: str
    state: str | None
    run_at: datetime | None


class Calls:
    """Calls on one connection, whose role must have the right to make them."""

    def __init__(self, connection: Connection[Any]) -> None:
        self.connection = connection

    def register(self, task: str = "work", **policy: Any) -> None:
        names = ["p_task", *(f"p_{name}" for name in policy)]
        arguments = ", ".join(f"{name} => %s" for name in names)
        values = [Jsonb(v) if isinstance(v, dict) else v for v in policy.values()]
        self.connection.execute(f"select trunkline.register_task({arguments})", [task, *values])

    def enqueue(self, task: str = "work", **arguments: Any) -> Any:
        """Enqueue one job; return (job_id, created, state, run_at)."""
        named = {"task": task, **arguments}
        names = ", ".join(f"p_{name} => %({name})s" for name in named)
        values = {k: Jsonb(v) if isinstance(v, dict) else v for k, v in named.items()}
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(f"select * from trunkline.enqueue({names})", values).fetchone()

    def enqueue_many(self, jobs: Sequence[dict[str, Any]]) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(
                "select * from trunkline.enqueue_many(p_jobs => %s)", (Jsonb(list(jobs)),)
            ).fetchall()

    def fill(self, count: int, **fields: Any) -> list[UUID]:
        """Enqueue `count` equal jobs and return their ids."""
        job = {"task": "work"} | fields
        return [row.job_id for row in self.enqueue_many([job] * count)]

    def claim(
        self,
        worker: str = "w",
        limit: int = 1,
        *,
        queues: list[str] | None = None,
        tasks: list[str] | None = None,
        position: Position | None = None,
    ) -> Claim:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            rows: list[Any] = cursor.execute(
                "select c.*, %(worker)s::text as worker from trunkline.claim("
                "p_worker => %(worker)s, p_queues => %(queues)s, p_limit => %(limit)s, "
                "p_tasks => %(tasks)s, p_position => %(position)s) as c",
                {
                    "worker": worker,
                    "queues": queues,
                    "limit": limit,
                    "tasks": tasks,
                    "position": None if position is None else Jsonb(position),
                },
            ).fetchall()
        next_position = rows[-1].position if rows else None
        return Claim([row for row in rows if row.job_id is not None], next_position)

    def batch(
        self, function: str, worker: str, attempts: Sequence[Attempt], **more: Any
    ) -> list[Verdict]:
        """Call heartbeat, complete, fail, snooze, release or acknowledge_cancel."""
        extra = "".join(f", p_{name} => %({name})s" for name in more)
        rows = self.connection.execute(
            f"select job_id, attempt, verdict, state, run_at from trunkline.{function}("
            f"p_worker => %(worker)s, p_jobs => %(jobs)s, p_attempts => %(attempts)s{extra})",
            {
                "worker": worker,
                "jobs": [a.job for a in attempts],
                "attempts": [a.number for a in attempts],
                **more,
            },
        ).fetchall()
        return [Verdict(*row) for row in rows]

    def change(self, function: str, job: UUID, *more: Any) -> Any:
        """Call cancel, retry, discard or reprioritise on one job; return its row."""
        places = ", ".join(["%s"] * (1 + len(more)))
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(
                f"select * from trunkline.{function}({places})", (job, *more)
            ).fetchone()

    def reclaim(self, limit: int = 500) -> list[Any]:
        with self.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute("select * from trunkline.reclaim(%s)", (limit,)).fetchall()

    def value(self, query: str, *arguments: Any) -> Any:
        """Return the only value of a query."""
        row = self.connection.execute(query.encode(), arguments or None).fetchone()
        assert row is not None, query
        return row[0]

    def clock(self) -> datetime:
        now: datetime = self.value("select trunkline.clock()")
        return now

    def pause_of_limit(self, limit: str) -> timedelta | None:
        """Return how long a provider's answer still pauses a limit, or None."""
        query = "select paused_until - trunkline.clock() from trunkline.limits where name = %s"
        remaining: timedelta | None = self.value(query, limit)
        return remaining

    def run_duty(self, call: str) -> Any:
        """Call a duty that returns one value, such as ``promote()``."""
        return self.value(f"select trunkline.{call}")

    def put_off(self, worker: str, attempts: Sequence[Attempt], delay: timedelta) -> list[Verdict]:
        """Snooze all attempts by the same delay, without jitter."""
        return self.batch("snooze", worker, attempts, delays=[delay] * len(attempts), jitter=False)
