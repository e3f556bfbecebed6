"""The profile installed in a fresh database, and helpers that call its public names."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.platform_roles import GATEWAY, PUBLIC, project
from tests.support.servers import Server
from trunkline import profiles
from trunkline.profiles import Profile, installer

TEXT, PDF, AUDIO, FINAL = "text_generation", "pdf_generation", "audio_generation", "finalize_job"
PARAMS = {
    "person1": {"name": "Ann", "born": "1984-05-17T08:30:00+02:00"},
    "person2": {"name": "Bob", "born": "1981-11-02"},
    "systems": ["vedic", "western", "human_design"],
}


class Studio:
    """Calls of producer, worker and operator, each on a separate connection."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.user = uuid4()

    def order(self, user: UUID | None = None, key: str | None = None, **params: Any) -> UUID:
        """Start a job."""
        job: UUID = self.start(user, key, **params).job_id
        return job

    def start(self, user: UUID | None = None, key: str | None = None, **params: Any) -> Any:
        (row,) = self.rows(
            "select * from studio.start_job('nuclear_v2', %s, %s, %s)",
            *(Jsonb(PARAMS | params), key, user or self.user),
            calls=self.producer,
        )
        return row

    def claim(self, *types: str, count: int = 5, worker: str = "w1") -> list[Any]:
        return self.rows(
            "select * from studio.claim_tasks(%s, %s, %s)",
            *(worker, count, list(types) or None),
            calls=self.worker,
        )

    def beat(self, task: UUID, worker: str = "w1", attempt: int | None = None) -> bool:
        found: bool = self.worker.value(
            "select studio.heartbeat_task(%s, %s, %s)", task, worker, attempt
        )
        return found

    def prepare(self, task: UUID, kind: str, name: str, worker: str = "w1") -> str:
        path: str = self.worker.value(
            "select studio.prepare_artifact(%s, %s, %s, %s)", task, worker, kind, name
        )
        return path

    def complete(
        self, task: UUID, output: Any = None, files: Any = None, worker: str = "w1", **more: Any
    ) -> bool:
        found: bool = self.worker.value(
            "select studio.complete_task(%s, %s, %s, %s, %s)",
            *(task, worker, Jsonb({} if output is None else output), more.get("attempt")),
            None if files is None else Jsonb(files),
        )
        return found

    def fail(self, task: UUID, error: str = "it broke", worker: str = "w1", **more: Any) -> Any:
        return self.worker.value(
            "select studio.fail_task(%s, %s, %s, %s)", task, worker, error, more.get("attempt")
        )

    def work(self, *types: str, count: int = 50, worker: str = "w1") -> list[Any]:
        """Claim and complete tasks with a file each; return them."""
        claimed = self.claim(*types, count=count, worker=worker)
        for task in claimed:
            self.complete(task.id, *self.product(task, worker), worker=worker)
        return claimed

    def product(self, task: Any, worker: str = "w1") -> tuple[Any, Any]:
        """The output and the files of a task, as a worker reports them."""
        number = (task.sequence or 0) // 3 + 1
        kind, name, duration = {
            TEXT: ("json", f"chapter{number}.json", None),
            PDF: ("pdf", f"chapter{number}.pdf", None),
            AUDIO: ("audio_mp3", f"chapter{number}.mp3", 61.5),
            FINAL: ("pdf", "full_nuclear.pdf", None),
        }[task.task_type]
        path = self.prepare(task.id, kind, name, worker)
        digest = sha256(name.encode()).hexdigest()
        file = {"path": path, "bytes": 1000, "sha256": digest, "duration": duration}
        return {"name": name, "path": path, "sha256": digest, "bytes": 1000, "words": 9}, [file]

    def finish(self, *types: str) -> int:
        """Do all work of these types that can be claimed; return how many tasks it was."""
        done = 0
        while claimed := self.work(*(types or (TEXT, PDF, AUDIO))):
            done += len(claimed)
        return done

    def store_base_data(self, task: Any, worker: str = "w1") -> str:
        """Compute the charts, as the first text of a job does; return the verdict."""
        arguments = (worker, task.id, task.attempt)
        began = "select outcome from trunkline.begin_once(%s, %s, %s, 1, 'base_data')"
        assert self.worker.value(began, *arguments) == "run"
        recorded = "select trunkline.record_once(%s, %s, %s, 'base_data', '{}')"
        verdict: str = self.worker.value(recorded, *arguments)
        return verdict

    def step(self, task: Any, name: str, worker: str = "w1") -> None:
        """Record a durable step of a running task."""
        query = (
            "select trunkline.record_steps(%s, array[%s], array[%s], array[1], array[%s],"
            " array['#1'], array[null::bigint], array['{}'::jsonb])"
        )
        assert self.worker.value(query, worker, task.id, task.attempt, name) == ["ok"]

    def progress(self, job: UUID) -> dict[str, Any]:
        found: dict[str, Any] = self.operator.value("select studio.job_progress(%s)", job)
        return found

    def read(self, job: UUID) -> Any:
        return self.operator.value("select studio.read_job(%s)", job)

    def job(self, job: UUID) -> Any:
        (row,) = self.rows("select * from studio.jobs where id = %s", job)
        return row

    def tasks(self, job: UUID, *types: str) -> list[Any]:
        return self.rows(
            "select * from studio.job_tasks where job_id = %s and task_type = any(%s)"
            " order by sequence",
            job,
            list(types or (TEXT, PDF, AUDIO)),
        )

    def artifacts(self, job: UUID) -> list[Any]:
        return self.rows("select * from studio.job_artifacts where job_id = %s order by name", job)

    def rows(self, query: str, *arguments: Any, calls: Calls | None = None) -> list[Any]:
        with (calls or self.operator).connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), arguments or None).fetchall()

    def unlimited(self) -> None:
        """Let a user run any number of tasks, for tests of other rules."""
        self.operator.value(
            "select trunkline.set_limit('studio-user/{tenant}', '{\"concurrency\": 1000}')"
        )

    def pass_time(self, interval: str) -> None:
        self.database.move_time(interval)

    def metric(self, name: str, label: str | None = None) -> Any:
        (row,) = self.rows(
            "select value, alert from studio.metrics where metric = %s"
            " and label is not distinct from %s",
            name,
            label,
        )
        return row


@pytest.fixture
def profile() -> Profile:
    return profiles.get("studio")


@pytest.fixture
def install(database: Database, profile: Profile) -> Callable[..., tuple[str, ...]]:
    """Install the profile."""

    def _install(**options: Any) -> tuple[str, ...]:
        return installer.install(database.dsn, profile, **options)

    return _install


@pytest.fixture
def studio(database: Database, install: Callable[..., tuple[str, ...]]) -> Studio:
    install()
    return Studio(database)


@pytest.fixture
def platform(platform_server: Server) -> Iterator[Database]:
    """A database whose platform grants every new object to its public roles."""
    with project(platform_server, *PUBLIC) as database:
        operator = database.connect("trunkline_operator")
        operator.execute("select trunkline.set_setting('tenant_claim', 'sub')")
        installer.install(database.dsn, profiles.get("studio"))
        yield database


def sign_in(database: Database, user: UUID | None, role: str = "authenticated") -> Any:
    """A connection as the gateway opens it for a signed-in user."""
    connection = database.connect(GATEWAY)
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    claims = sql.Literal(f'{{"sub": "{user}", "role": "authenticated"}}' if user else "")
    connection.execute(sql.SQL("set request.jwt.claims = {}").format(claims))
    return connection


def refused(code: str) -> Any:
    return pytest.raises(psycopg.Error, check=lambda e: e.sqlstate == code)
