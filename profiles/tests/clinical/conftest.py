"""The profile installed in a fresh database, and helpers that call its public names."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

from profiles.tests.templates import template_with_profile
from tests.support import databases
from tests.support.calls import Calls
from tests.support.databases import Database
from tests.support.platform_roles import GATEWAY, PUBLIC, project
from tests.support.servers import Server
from trunkline import profiles
from trunkline.profiles import Profile, installer

TYPES = (
    "fast_queue_security",
    "fast_queue_ocr",
    "fast_queue_spatial",
    "ai_queue_pass1",
    "ai_queue_pass2",
    "ai_queue_pass3",
    "audit_cleanup",
    "notification_delivery",
    "report_generation",
    "backup_operation",
    "system_maintenance",
    "consent_verification",
)
AI = "ai_queue_pass1"
PLAIN = "report_generation"
# Roles of a platform that must not have access.
CLIENTS = ("anon", "authenticated")


class Clinic:
    """Calls of producer, worker and operator, each on a separate connection."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.patient = self.admit()
        self._file: UUID | None = None

    def admit(self) -> UUID:
        """A new patient."""
        found: UUID = self.producer.value(
            "insert into clinical.user_profiles (full_name) values ('P') returning id"
        )
        return found

    def upload(
        self, patient: UUID | None = None, key: str | None = None, path: str = "scan.png"
    ) -> Any:
        patient = patient or self.patient
        (found,) = self.rows(
            "select * from clinical.submit_upload(%s, %s, %s, %s)",
            patient,
            f"{patient}/{path}",
            Jsonb({"filename": "scan.png", "mime_type": "image/png", "size_bytes": 123}),
            key,
            calls=self.producer,
        )
        return found

    @property
    def file(self) -> UUID:
        """A file whose own pipeline was cancelled, for jobs that only need to name one."""
        if self._file is None:
            made = self.upload()
            self.producer.value("select clinical.cancel_job(%s)", made.job_id)
            self._file = made.file_id
        return self._file

    def enqueue(
        self, kind: str = PLAIN, payload: dict[str, Any] | None = None, **more: Any
    ) -> UUID:
        """A job of that type; a job of the pipeline names a file unless a payload is passed."""
        named = {"job_name": "test", "job_payload": None, **more}
        pipeline = kind in TYPES[:6]
        body = {"shell_file_id": str(self.file)} if pipeline else {"work": True}
        named["job_payload"] = Jsonb(body | (payload or {}))
        arguments = ", ".join(f"{name} => %s" for name in named)
        found: UUID = self.producer.value(
            f"select clinical.enqueue_job_v3(job_type => %s, {arguments})", kind, *named.values()
        )
        return found

    def claim(self, worker: str = "w1", *kinds: str) -> Any:
        """The claimed row, or None."""
        found = self.rows(
            "select * from clinical.claim_next_job_v3(%s, %s)",
            worker,
            list(kinds) or None,
            calls=self.worker,
        )
        assert len(found) <= 1
        return found[0] if found else None

    def start(self, kind: str = PLAIN, worker: str = "w1", **more: Any) -> UUID:
        """A running job of that type, and no other."""
        job = self.enqueue(kind, **more)
        assert self.claim(worker).job_id == job
        return job

    def beat(self, job: UUID, worker: str = "w1", attempt: int | None = None) -> bool:
        found: bool = self.worker.value(
            "select clinical.update_job_heartbeat(%s, %s, %s)", job, worker, attempt
        )
        return found

    def complete(self, job: UUID, worker: str = "w1", result: Any = None, **more: Any) -> bool:
        found: bool = self.worker.value(
            "select clinical.complete_job(%s, %s, %s, %s)",
            job,
            worker,
            None if result is None else Jsonb(result),
            more.get("attempt"),
        )
        return found

    def fail(self, job: UUID, worker: str = "w1", error: Any = None, **more: Any) -> bool:
        found: bool = self.worker.value(
            "select clinical.fail_job(%s, %s, %s, %s, %s)",
            job,
            worker,
            more.get("attempt"),
            Jsonb(error or {"type": "Boom", "message": "it broke"}),
            more.get("retryable", True),
        )
        return found

    def reschedule(
        self, job: UUID, delay: int, worker: str | None = "w1", *, jitter: bool = True, **more: Any
    ) -> bool:
        found: bool = self.worker.value(
            "select clinical.reschedule_job(%s, %s, %s, %s, %s, %s)",
            job,
            delay,
            "api_rate_limit_backpressure",
            jitter,
            worker,
            more.get("attempt"),
        )
        return found

    def write(
        self, job: UUID, body: Any, *, attempt: int | None = 1, worker: str = "w1", kind: str = "k"
    ) -> UUID:
        """A record for the file of a claimed job."""
        found: UUID = self.worker.value(
            "select clinical.write_record(%s, %s, %s, %s, %s)",
            *(job, attempt, worker, kind, Jsonb(body)),
        )
        return found

    def row(self, job: UUID) -> Any:
        """The job as job_queue shows it."""
        (found,) = self.rows("select * from clinical.job_queue where id = %s", job)
        return found

    def audit(self, record: UUID, table: str = "job_queue") -> list[Any]:
        """The audit events of a record, oldest first."""
        return self.rows(
            "select * from clinical.audit_log where record_id = %s and table_name = %s order by at",
            str(record),
            table,
        )

    def limit(self, name: str = "openai/gpt-4o-mini") -> Any:
        provider, endpoint = name.split("/")
        (found,) = self.rows(
            "select * from clinical.api_rate_limits where provider_name = %s and api_endpoint = %s",
            provider,
            endpoint,
        )
        return found

    def acquire(self, tokens: int = 1000, name: str = "openai/gpt-4o-mini") -> Any:
        (found,) = self.rows(
            "select * from clinical.acquire_api_capacity(%s, %s, %s)",
            *name.split("/"),
            tokens,
            calls=self.worker,
        )
        return found

    def release(self, grant: UUID | None, actual: int | None, estimate: int = 1000) -> bool:
        found: bool = self.worker.value(
            "select clinical.release_api_capacity('openai', 'gpt-4o-mini', %s, %s, %s)",
            estimate,
            actual,
            grant,
        )
        return found

    def configure(self, key: str, value: str | None) -> str:
        found: str = self.operator.value("select clinical.set_configuration(%s, %s)", key, value)
        return found

    def rows(self, query: str, *arguments: Any, calls: Calls | None = None) -> list[Any]:
        with (calls or self.operator).connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), arguments or None).fetchall()

    def pass_time(self, interval: str) -> None:
        self.database.move_time(interval)

    def metric(self, name: str, label: str | None = None) -> Any:
        (found,) = self.rows(
            "select value, alert from clinical.metrics where metric = %s"
            " and label is not distinct from %s",
            name,
            label,
        )
        return found


@pytest.fixture
def profile() -> Profile:
    return profiles.get("clinical")


@pytest.fixture
def database(request: pytest.FixtureRequest, server: Server, template: str) -> Iterator[Database]:
    """A separate database; with all phases installed if the test uses ``clinic``."""
    if "clinic" in request.fixturenames:
        template = template_with_profile(server, "clinical")
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
def clinic(database: Database) -> Clinic:
    """With all phases installed."""
    return Clinic(database)


@pytest.fixture
def nobody() -> UUID:
    """An unused id."""
    return uuid4()


@pytest.fixture
def health() -> Iterator[str]:
    """A health endpoint: /ok is healthy, everything else is not."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/ok" else 503)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as inherited
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def platform(platform_server: Server) -> Iterator[Database]:
    """A database whose platform grants every new object to its public roles."""
    with project(platform_server, *PUBLIC) as database:
        database.superuser().execute("grant trunkline_producer, trunkline_worker to service_role")
        installer.install(database.dsn, profiles.get("clinical"), ["1", "2"])
        yield database


def sign_in(
    database: Database, user: UUID | None, role: str = "authenticated"
) -> psycopg.Connection:
    """A connection as the gateway opens it for a signed-in user."""
    connection = database.connect(GATEWAY)
    connection.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
    claims = sql.Literal(f'{{"sub": "{user}", "role": "authenticated"}}' if user else "")
    connection.execute(sql.SQL("set request.jwt.claims = {}").format(claims))
    return connection
