"""The profile installed in a fresh database, and short calls of its outer names."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from tests.support.calls import Calls
from tests.support.databases import Database
from trunkline import profiles
from trunkline.profiles import Profile, installer

TYPES = {
    "protect_document_v2": 5,
    "document.protected": 5,
    "run_tsa": 30,
    "submit_anchor_polygon": 60,
    "submit_anchor_bitcoin": 60,
    "build_artifact": 15,
}


class Desk:
    """What producer, worker and operator do with the profile, each on a connection of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))

    def enqueue(self, kind: str = "run_tsa", key: str | None = None) -> UUID:
        found: UUID = self.producer.value(
            "select executor.enqueue_job(p_type => %s, p_dedupe_key => %s)", kind, key
        )
        return found

    def start(self, kind: str = "run_tsa", worker: str = "w1") -> UUID:
        """A running job of that type, and no other."""
        job = self.enqueue(kind)
        assert self.worker.claim(worker, 10).jobs == [job]
        return job

    def row(self, job: UUID) -> Any:
        """The job as executor_jobs shows it."""
        (found,) = self.rows("select * from executor.executor_jobs where id = %s", job)
        return found

    def rows(self, query: str, *arguments: Any) -> list[Any]:
        with self.operator.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), arguments or None).fetchall()

    def reclaim(self) -> list[Any]:
        with self.worker.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute("select * from executor.reclaim_stale_jobs()").fetchall()

    def beat(self, job: UUID, worker: str = "w1", attempt: int | None = None) -> bool:
        found: bool = self.worker.value(
            "select executor.update_job_heartbeat(%s, %s, %s)", job, worker, attempt
        )
        return found

    def wake(self, wrapper: str) -> Any:
        with self.worker.connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(f"select * from executor.{wrapper}()".encode()).fetchone()

    def pass_time(self, interval: str) -> None:
        self.database.move_time(interval)


@pytest.fixture
def profile() -> Profile:
    return profiles.get("executor")


@pytest.fixture
def install(database: Database, profile: Profile) -> Callable[..., tuple[str, ...]]:
    """Install phases: ``install("phase1")``; all of them without a name."""

    def _install(*phases: str, **options: Any) -> tuple[str, ...]:
        chosen = phases or tuple(phase.name for phase in profile.phases)
        return installer.install(database.dsn, profile, chosen, **options)

    return _install


@pytest.fixture
def desk(database: Database, install: Callable[..., tuple[str, ...]]) -> Desk:
    """With all phases installed."""
    install()
    return Desk(database)


@pytest.fixture
def listener(database: Database) -> psycopg.Connection[Any]:
    """A sleeping worker's connection: it listens for wake-ups."""
    connection = database.connect("trunkline_worker")
    connection.execute("listen trunkline_wake")
    return connection
