"""The profile installed in a fresh database, and helpers that call its public names."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from profiles.tests.templates import template_with_profile
from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.servers import Server
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
    """Calls of producer, worker and operator, each on a separate connection."""

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
def database(request: pytest.FixtureRequest, server: Server, template: str) -> Iterator[Database]:
    """A separate database; with all phases installed if the test uses ``desk``."""
    if "desk" in request.fixturenames:
        template = template_with_profile(server, "executor")
    with databases.fresh(server, template) as made:
        yield made


@pytest.fixture
def install(database: Database, profile: Profile) -> Callable[..., tuple[str, ...]]:
    """Install phases: ``install("phase1")``; all of them without a name."""

    def _install(*phases: str, **options: Any) -> tuple[str, ...]:
        chosen = phases or tuple(phase.name for phase in profile.phases)
        return installer.install(database.dsn, profile, chosen, **options)

    return _install


@pytest.fixture
def desk(database: Database) -> Desk:
    """With all phases installed."""
    return Desk(database)


@pytest.fixture
def listener(database: Database) -> psycopg.Connection[Any]:
    """A sleeping worker's connection: it listens for wake-ups."""
    connection = database.connect("trunkline_worker")
    connection.execute("listen trunkline_wake")
    return connection
