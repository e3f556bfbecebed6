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
from tests.support.platform_roles import PUBLIC, project
from tests.support.servers import Server
from trunkline import profiles
from trunkline.profiles import Profile, installer

MARGINS = {"top": 1, "bottom": 1, "left": 1, "right": 1}
MIB = 1 << 20
DATA = {
    "headline": "Engineer",
    "contact": ["ann@example.com", "+1 555 0100"],
    "summary": "Builds queues.",
    "sections": [
        {
            "title": "Work",
            "entries": [
                {"title": "Engineer", "place": "Acme", "period": "2020-2026", "text": ["Queues."]}
            ],
        }
    ],
}


class Exports:
    """Calls of producer, worker and operator, each on a separate connection."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.producer = Calls(database.connect("trunkline_producer"))
        self.worker = Calls(database.connect("trunkline_worker"))
        self.operator = Calls(database.connect("trunkline_operator"))
        self.owner = database.connect("trunkline_owner")
        self.user = self.person("Ann")

    def person(self, name: str = "", *, administrator: bool = False) -> UUID:
        user = uuid4()
        self.owner.execute(
            "insert into exports.people values (%s, %s, %s)", (user, name, administrator)
        )
        return user

    def document(
        self, title: str = "CV", user: UUID | None = None, data: dict[str, Any] | None = None
    ) -> UUID:
        (row,) = self.rows(
            "insert into exports.documents (user_id, title, data) values (%s, %s, %s) returning id",
            *(user or self.user, title, Jsonb(DATA if data is None else data)),
            calls=self.producer,
        )
        found: UUID = row.id
        return found

    def create(
        self, document: UUID | None = None, user: UUID | None = None, **options: Any
    ) -> UUID:
        """Queue an export, by default of a new document."""
        found: UUID = self.answer(document, user, **options).job_id
        return found

    def answer(self, document: UUID | None = None, user: UUID | None = None, **options: Any) -> Any:
        owner = user or self.user
        (row,) = self.rows(
            "select * from exports.create_export_job(%s, %s, %s)",
            *(document or self.document(user=owner), Jsonb(options), owner),
            calls=self.producer,
        )
        return row

    def batch(self, *documents: UUID, user: UUID | None = None, **options: Any) -> Any:
        return self.producer.value(
            "select exports.create_export_batch(%s, %s, %s)",
            *(Jsonb([str(one) for one in documents]), Jsonb(options), user or self.user),
        )

    def claim(self, worker: str = "w1", user: UUID | None = None) -> Any:
        rows = self.rows(
            "select * from exports.fetch_next_export_job(%s, %s)", user, worker, calls=self.worker
        )
        return rows[0] if rows else None

    def progress(self, job: UUID, percent: int, worker: str = "w1", attempt: Any = None) -> bool:
        found: bool = self.worker.value(
            "select exports.update_job_progress(%s, %s, %s, %s)", job, percent, worker, attempt
        )
        return found

    def upload(self, job: UUID, size: int = 1000, worker: str = "w1") -> str:
        path: str = self.worker.value(
            "select exports.prepare_upload(%s, %s, %s)", job, worker, size
        )
        return path

    def complete(
        self, job: UUID, size: int = 1000, worker: str = "w1", attempt: Any = None, pages: int = 2
    ) -> bool:
        """Upload a file and complete an export with it."""
        path = self.upload(job, size, worker)
        found: bool = self.worker.value(
            "select exports.complete_job(%s, %s, %s, %s, %s, %s, %s)",
            *(job, path, size, pages, worker, sha256(path.encode()).hexdigest(), attempt),
        )
        return found

    def fail(
        self, job: UUID, error: str = "it broke", worker: str = "w1", *, permanent: bool = False
    ) -> Any:
        return self.worker.value(
            "select exports.fail_job(%s, %s, %s, null, %s)", job, error, worker, permanent
        )

    def finish(self, size: int = 1000) -> UUID:
        """Create, claim and complete an export; return its row of the history."""
        job = self.create()
        assert self.claim().id == job
        assert self.complete(job, size)
        return self.history_of(job).id  # type: ignore[no-any-return]

    def job(self, job: UUID) -> Any:
        (row,) = self.rows("select * from exports.export_jobs where id = %s", job)
        return row

    def jobs(self) -> list[Any]:
        return self.rows("select * from exports.export_jobs order by created_at, id")

    def status(self, job: UUID, user: UUID | None = None) -> Any:
        """The status as the user sees it."""
        with self.acting(user) as calls:
            return calls.value("select exports.get_job_status(%s)", job)

    def cancel(self, job: UUID, user: UUID | None = None) -> str:
        with self.acting(user) as calls:
            told: str = calls.value("select exports.cancel_job(%s)", job)
            return told

    def history(self) -> list[Any]:
        return self.rows("select * from exports.export_history order by created_at, id")

    def history_of(self, job: UUID) -> Any:
        (row,) = self.rows("select * from exports.export_history where job_id = %s", job)
        return row

    def seed(self, size: int, user: UUID | None = None) -> None:
        """A row of the history whose file is only claimed to be in the store."""
        self.owner.execute(
            "insert into exports.export_history (user_id, document_version, template_slug,"
            " file_name, file_path, file_size, page_count, created_at, expires_at, artifact_id,"
            " job_id) select %s, 1, 'minimal', 'x.pdf', 'x', %s, 1, c.now, c.now + '7 days',"
            " gen_random_uuid(), gen_random_uuid() from (select trunkline.clock() as now) as c",
            (user or self.user, size),
        )

    def acting(self, user: UUID | None = None) -> Any:
        """Calls of an application that acts for a user."""
        return _Acting(self.producer, user or self.user)

    def rows(self, query: str, *arguments: Any, calls: Calls | None = None) -> list[Any]:
        with (calls or self.operator).connection.cursor(row_factory=namedtuple_row) as cursor:
            return cursor.execute(query.encode(), arguments or None).fetchall()

    def install_again(self) -> None:
        """Apply all scripts once more, as an upgrade does."""
        profile = profiles.get("exports")
        for script in profile.scripts(profile.phases[0]):
            self.owner.execute(script.text.encode())

    def set(self, **settings: Any) -> None:
        for name, value in settings.items():
            self.operator.connection.execute(
                sql.SQL("update exports.settings set {} = %s").format(sql.Identifier(name)),
                (value,),
            )

    def limit(self, name: str, **parts: Any) -> None:
        self.operator.value("select trunkline.set_limit(%s, %s)", name, Jsonb(parts))

    def unlimited(self) -> None:
        """Let any number of renders run, for tests of other rules."""
        self.limit("exports-renders", concurrency=1000)
        self.limit("fair:exports/{tenant}", share_cap=1000)

    def later(self, interval: str) -> None:
        self.database.move_time(interval)

    def metric(self, name: str, label: str | None = None) -> Any:
        (row,) = self.rows(
            "select value, alert from exports.metrics where metric = %s"
            " and label is not distinct from %s",
            *(name, label),
        )
        return row


class _Acting:
    def __init__(self, calls: Calls, user: UUID) -> None:
        self._calls = calls
        self._user = user

    def __enter__(self) -> Calls:
        self._set(str(self._user))
        return self._calls

    def __exit__(self, *_: object) -> None:
        self._set("")

    def _set(self, tenant: str) -> None:
        self._calls.connection.execute(
            "select set_config('trunkline.tenant', %s, false)", (tenant,)
        )


@pytest.fixture
def profile() -> Profile:
    return profiles.get("exports")


@pytest.fixture
def install(database: Database, profile: Profile) -> Callable[..., tuple[str, ...]]:
    """Install the profile."""

    def _install(**options: Any) -> tuple[str, ...]:
        return installer.install(database.dsn, profile, **options)

    return _install


@pytest.fixture
def exports(database: Database, install: Callable[..., tuple[str, ...]]) -> Exports:
    install()
    return Exports(database)


@pytest.fixture
def platform(platform_server: Server) -> Iterator[Database]:
    """A database whose platform grants every new object to its public roles."""
    with project(platform_server, *PUBLIC) as database:
        operator = database.connect("trunkline_operator")
        operator.execute("select trunkline.set_setting('tenant_claim', 'sub')")
        # Claims count for these logins only; `sign_in` uses them in place of a gateway's.
        operator.execute("select trunkline.set_setting('authenticators', 'authenticated, anon')")
        installer.install(database.dsn, profiles.get("exports"))
        yield database


def sign_in(database: Database, user: UUID | None, role: str = "authenticated") -> Any:
    """A connection as the gateway opens it for a signed-in user."""
    connection = database.connect(role)
    claims = sql.Literal(f'{{"sub": "{user}", "role": "authenticated"}}' if user else "")
    connection.execute(sql.SQL("set request.jwt.claims = {}").format(claims))
    return connection


def refused(code: str, text: str = "") -> Any:
    return pytest.raises(psycopg.Error, match=text or None, check=lambda e: e.sqlstate == code)
