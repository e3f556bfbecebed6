"""An operator on a database with jobs in every state, and callers of every role."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from psycopg.conninfo import make_conninfo

from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline.operate import SyncOperator


@dataclass(slots=True)
class Scene:
    """A database, calls on it as its superuser, and operators."""

    database: Database
    calls: Calls
    operator: SyncOperator
    _opened: list[SyncOperator] = field(default_factory=list)

    def as_role(self, role: str, **more: Any) -> SyncOperator:
        """Return an operator whose session has only one of our roles."""
        operator = SyncOperator(dsn_as(self.database, role), connections=1, **more)
        self._opened.append(operator)
        return operator

    def close(self) -> None:
        for operator in self._opened:
            operator.close()

    def finish(self, jobs: int = 1, **fields: Any) -> list[UUID]:
        """Enqueue jobs in their own queue and complete them."""
        job_ids = self.calls.fill(jobs, queue="finishing", **fields)
        self._claim(jobs, "finishing")
        self.calls.connection.execute(
            "select trunkline.complete('w', %s, %s)", (job_ids, [1] * len(job_ids))
        )
        return job_ids

    def bury(self, jobs: int = 1, error: str = "boom", **fields: Any) -> list[UUID]:
        """Enqueue jobs in their own queue and let them fail for good."""
        job_ids = self.calls.fill(jobs, **{"queue": "burying", **fields})
        self._claim(jobs, fields.get("queue", "burying"))
        self.fail(job_ids, error)
        return job_ids

    def fail(self, jobs: list[UUID], error: str, attempt: int = 1) -> None:
        """End attempts of worker w for good."""
        self.calls.connection.execute(
            "select trunkline.fail('w', %s, %s,"
            " array_fill(jsonb_build_object('type', 'ValueError', 'message', %s::text), array[%s]),"
            " array_fill(false, array[%s]))",
            (jobs, [attempt] * len(jobs), error, len(jobs), len(jobs)),
        )

    def _claim(self, jobs: int, queue: str) -> None:
        claimed = 0
        while claimed < jobs:
            claimed += len(self.calls.claim("w", min(jobs - claimed, 1000), queues=[queue]).jobs)

    def states(self) -> dict[str, int]:
        """Count the jobs in each state."""
        rows = self.calls.connection.execute(
            "select state, count(*) from trunkline.jobs group by state"
        )
        return dict(rows.fetchall())


def dsn_as(database: Database, role: str) -> str:
    """Return the connection string of a session that has this role from the start."""
    return make_conninfo(database.superuser_dsn, options=f"-c role=trunkline_{role}")


@pytest.fixture
def scene(guard: Database) -> Iterator[Scene]:
    calls = Calls(guard.superuser())
    calls.register("work")
    with SyncOperator(dsn_as(guard, "operator"), actor="ann", connections=2) as operator:
        new_scene = Scene(guard, calls, operator)
        yield new_scene
        new_scene.close()
