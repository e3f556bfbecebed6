"""What every chaos test works with: a database in a hurry, worker processes, gates, the audit."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from tests.support import guard, ledger
from tests.support.databases import Database
from tests.support.internals import periodic
from tests.support.ledger import Run
from tests.support.waiting import DEADLINE, until
from tests.support.worker_process import WorkerProcess

__all__ = ["APP", "RETURN", "Scene"]

APP = "tests.chaos.app:app"

# Work must go on within ten seconds of the server's return, says the bound on the pauses that
# tests/worker/test_part.py checks. A busy machine may take several times as long; what is lost for
# good takes longer than this.
RETURN = 60.0

_T = TypeVar("_T")

# The shortest beats the engine allows, so that a death is noticed soon. On a busy machine a living
# process may be silent for seconds too, so where no death is part of the story it has more of them.
_PATIENT = 10
_HURRIED = 2
_HURRY = """
select trunkline.set_setting('pulse_interval', '1 second');
select trunkline.set_setting('heartbeat_interval', '1 second');
select trunkline.set_setting('reclaim_jitter', '0 seconds');
select trunkline.set_setting('allow_unknown_tasks', 'true');
"""

# What was written with a completion is there exactly when the completion is, and once.
_POSTINGS = """
select job_id, attempt from chaos.postings group by job_id, attempt having count(*) > 1
union all
(select job_id, attempt from chaos.postings
 except select job_id, attempt from trunkline.jobs where state = 'completed')
union all
(select job_id, attempt from trunkline.jobs
 where state = 'completed' and task in ('posted', 'gated_posting')
 except select job_id, attempt from chaos.postings)
"""


class Scene:
    """One test's database, its workers and its books."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.gates = folder / "gates"
        self.gates.mkdir()
        self.jobs: list[UUID] = []
        self._folder = folder
        self._workers: list[WorkerProcess] = []
        self._connection: psycopg.Connection[Any] | None = None
        guard.install(database)
        ledger.install(database)
        with psycopg.connect(database.superuser_dsn, autocommit=True) as connection:
            connection.execute(_HURRY)
            periodic.hurry_duties(connection)
        self._allow_misses(_PATIENT)

    def close(self) -> None:
        for worker in self._workers:
            worker.destroy()
            # Shown by pytest when the test failed.
            print(f"--- worker {worker.pid}\n{worker.log[-20000:]}")
        if self._connection is not None:
            self._connection.close()

    def launch(
        self,
        *options: str,
        dsn: str | None = None,
        listen_dsn: str | None = None,
        environment: dict[str, str] | None = None,
    ) -> WorkerProcess:
        """Start a worker and do not wait for it."""
        worker = WorkerProcess(
            APP,
            *options,
            environment={
                "TRUNKLINE_DSN": dsn or self.database.dsn,
                "CHAOS_GATES": str(self.gates),
                ledger.DSN_VARIABLE: self.database.superuser_dsn,
                **({"CHAOS_LISTEN_DSN": listen_dsn} if listen_dsn else {}),
                **(environment or {}),
            },
            log=self._folder / f"worker-{len(self._workers)}.log",
        )
        self._workers.append(worker)
        return worker

    def start(self, *options: str, processes: int = 1, **arguments: Any) -> WorkerProcess:
        """Start a worker and wait until the database knows it."""
        worker = self.launch(*options, **arguments)
        worker.until_ready(self.superuser, processes)
        return worker

    @property
    def superuser(self) -> psycopg.Connection[Any]:
        """A connection past every proxy, opened again when the server was away."""
        with suppress(psycopg.OperationalError):
            if self._connection is not None:
                self._connection.execute("select 1")
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.database.superuser_dsn, autocommit=True)
        return self._connection

    def value(self, query: str, *arguments: Any) -> Any:
        row = self.superuser.execute(query.encode(), arguments or None).fetchone()
        assert row is not None, query
        return row[0]

    def until(self, condition: Callable[[], _T], what: str, *, deadline: float = DEADLINE) -> _T:
        """Wait like ``until``; while the server is away the condition does not hold."""

        def look() -> _T | None:
            with suppress(psycopg.OperationalError):
                return condition()
            return None

        found = until(look, what, deadline=deadline)
        assert found is not None
        return found

    def enqueue(self, task: str, count: int = 1, /, **payload: Any) -> list[UUID]:
        """Enqueue equal jobs and remember them for the audit."""
        rows = self.superuser.execute(
            "select job_id from trunkline.enqueue_many(p_jobs => %s)",
            (Jsonb([{"task": task, "payload": payload}] * count),),
        ).fetchall()
        made = [row[0] for row in rows]
        self.jobs += made
        return made

    def open(self, gate: str, *, attempt: int | None = None) -> None:
        """Open a gate, for all or for this attempt only."""
        (self.gates / (gate if attempt is None else f"{gate}.{attempt}")).touch()

    def runs(self, *jobs: UUID) -> list[Run]:
        return ledger.runs(self.superuser, *jobs)

    def expect_deaths(self) -> None:
        """From now on a worker counts as gone after two missed pulses, as it does by default."""
        self._allow_misses(_HURRIED)

    def _allow_misses(self, count: int) -> None:
        self.superuser.execute("select trunkline.set_setting('pulse_misses', %s)", (str(count),))

    def run_duties(self) -> None:
        """Do what a worker does every five seconds, where waiting for it proves nothing more."""
        self.superuser.execute("select trunkline.run_duties()")

    def until_running(
        self, jobs: list[UUID], *, attempt: int = 1, deadline: float = DEADLINE
    ) -> None:
        """Wait until a handler has begun this attempt of each job."""

        def running() -> bool:
            if attempt > 1:
                self.run_duties()
            begun = {run.job for run in self.runs(*jobs) if run.attempt >= attempt}
            return begun == set(jobs)

        self.until(
            running, f"handlers run attempt {attempt} of {len(jobs)} jobs", deadline=deadline
        )

    def states(self, jobs: list[UUID]) -> dict[str, int]:
        """Count the jobs by state."""
        rows = self.superuser.execute(
            "select state, count(*) from trunkline.jobs where job_id = any(%s) group by state",
            (jobs,),
        ).fetchall()
        return dict(rows)

    def until_all(
        self, state: str, jobs: list[UUID] | None = None, deadline: float = DEADLINE
    ) -> None:
        """Wait until each of the jobs, or of all jobs, is in this state."""
        wanted = self.jobs if jobs is None else jobs
        self.until(
            lambda: self.states(wanted) == {state: len(wanted)},
            f"{len(wanted)} jobs are {state}",
            deadline=deadline,
        )

    def job(self, job: UUID) -> Any:
        """One job with everything about it, as an object with attributes."""
        with self.superuser.cursor(row_factory=psycopg.rows.namedtuple_row) as cursor:
            found = cursor.execute(
                "select * from trunkline.jobs where job_id = %s", (job,)
            ).fetchone()
        assert found is not None, job
        return found

    def lost(self, *jobs: UUID) -> list[str]:
        """Why attempts of these jobs were taken back, in order."""
        rows = self.superuser.execute(
            "select reason from trunkline.reclaim_history where job_id = any(%s) order by at",
            (list(jobs),),
        ).fetchall()
        return [row[0] for row in rows]

    def require_balance(self, *, completed: int | None = None) -> None:
        """Nothing lost, nothing completed twice: every job has one end, and the work was done."""
        found = ledger.audit(self.superuser, self.jobs)
        assert found.faults == {}, found.faults
        wanted = len(self.jobs) if completed is None else completed
        assert found.completed == wanted, f"{found.completed} completed, not {wanted}"
        books = guard.job_counts(self.superuser)
        assert books.total == books.ids == len(self.jobs), books
        misfits = self.superuser.execute(_POSTINGS).fetchall()
        assert misfits == [], f"postings without completions, or the reverse: {misfits}"
