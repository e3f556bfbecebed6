"""Every field of a request means the same to both functions, the Python client and the CLI."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.support.databases import Database
from tests.support.internals import jobs as jobs_
from trunkline import Trunkline
from trunkline.cli.main import cli
from trunkline.client.request import OptionArguments, Options
from trunkline.errors import InvalidDuration, TrunklineError
from trunkline.model import REQUEST_FIELDS

LATER = datetime(2100, 1, 1, tzinfo=UTC)
NAMES = {"run_at": "--at", "tags": "--tag", "expires_at": "--expires"}


@dataclass(frozen=True)
class Field:
    """A value that is accepted and what is seen of it, and one that is refused and with what."""

    good: Any
    seen: str
    bad: Any
    code: str = "invalid_argument"
    # What the command line gets, if it is not the text of the value.
    typed: Callable[[Any], list[str]] | None = None


def spelt(value: Any) -> list[str]:
    """Write values as NAME=VALUE."""
    return [f"{name}={number}" for name, number in value.items()]


CASES = {
    "task": Field("limited", "task = 'limited'", ""),
    "payload": Field({"n": 1}, "payload = '{\"n\": 1}'", [1], "payload_not_object"),
    "queue": Field("other", "queue = 'other'", ""),
    "priority": Field(7, "priority = 7", 50, "priority_out_of_range"),
    "run_at": Field(LATER, f"run_at = '{LATER}'", LATER.replace(year=9500)),
    "delay": Field(timedelta(hours=1), "state = 'scheduled'", timedelta(days=3651)),
    "tenant": Field("acme", "tenant = 'acme'", ""),
    "unique_key": Field("u", "unique_key = 'u'", ""),
    "idempotency_key": Field("i", "true", ""),
    "correlation_id": Field("c", "correlation_id = 'c'", "c" * 201),
    "max_attempts": Field(3, "max_attempts = 3", 1001),
    "tags": Field(["t"], "tags = '{t}'", ["t" * 201], typed=list),
    "cost": Field({"tokens": 7}, "true", {"tokens": -1}, "invalid_cost", typed=spelt),
    "accepted": Field(True, "true", True, typed=lambda _: []),
    "expires_at": Field(LATER, f"expires_at = '{LATER}'", LATER.replace(year=2000)),
}


def plain(value: Any) -> Any:
    """Return a value as JSON holds it."""
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f} seconds"
    return value.isoformat() if isinstance(value, datetime) else value


def request(field: str, value: Any) -> dict[str, Any]:
    return {"task": "limited", "payload": {}} | {field: value}


class Ways:
    """The four ways to enqueue one request; each returns the id of the job."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.app = Trunkline(dsn)

    def close(self) -> None:
        self.app.sync.close()
        self.connection.close()

    def enqueue(self, field: str, value: Any) -> str:
        given = request(field, value)
        names = ", ".join(f"p_{name} => %s" for name in given)
        values = [Jsonb(v) if name in ("payload", "cost") else v for name, v in given.items()]
        row = self.connection.execute(
            f"select job_id::text from trunkline.enqueue({names})".encode(), values
        ).fetchone()
        assert row is not None
        return str(row[0])

    def enqueue_many(self, field: str, value: Any) -> str:
        good = {"task": "limited"}
        given = {name: plain(v) for name, v in request(field, value).items()}
        rows = self.connection.execute(
            "select job_id::text from trunkline.enqueue_many(%s)",
            (Jsonb([good, good, given, good]),),
        ).fetchall()
        return str(rows[2][0])

    def client(self, field: str, value: Any) -> str:
        given = request(field, value)
        task, payload = given.pop("task"), given.pop("payload")
        if "expires_at" in given:
            given["expires"] = given.pop("expires_at")
        return str(self.app.sync.jobs.enqueue(task, payload, **given).id)

    def command(self, field: str, value: Any) -> str:
        given = request(field, value)
        words = ["jobs", "enqueue", "--json", str(given.pop("task"))]
        words.append(json.dumps(given.pop("payload")))
        for name, v in given.items():
            option = NAMES.get(name, f"--{name.replace('_', '-')}")
            typed = CASES[name].typed
            if name == "accepted":
                words.append(option)
            for text in typed(v) if typed else [_typed(v)]:
                words += [option, text]
        runner = CliRunner(env={"TRUNKLINE_DSN": self.dsn})
        result = runner.invoke(cli, words, catch_exceptions=False)
        if result.exit_code:
            raise UsageError(result.output)
        return str(json.loads(result.stdout)["job_id"])


class UsageError(Exception):
    """The command line itself refused."""


def _typed(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{value.total_seconds():.0f}s"
    return value.isoformat() if isinstance(value, datetime) else str(value)


@pytest.fixture
def dsn(database: Database) -> str:
    connection = database.connect()
    connection.execute("""select trunkline.set_limit('api', '{"tokens_per_minute": 1000}')""")
    connection.execute(
        "select trunkline.register_task('limited', p_limits => '{api}', p_queue => 'shut')"
    )
    return database.dsn


WAYS = ("enqueue", "enqueue_many", "client", "command")


@pytest.mark.parametrize("field", REQUEST_FIELDS)
def test_every_field_is_accepted(database: Database, dsn: str, field: str) -> None:
    case = CASES[field]
    behind = database.superuser()
    ways = Ways(dsn)
    if field == "accepted":
        behind.execute("select trunkline.pause_queue('shut', p_refuse_enqueue => true)")
    try:
        for way in WAYS:
            if (field, way) == ("accepted", "enqueue_many"):
                # The other jobs of the batch are not accepted.
                behind.execute("select trunkline.resume_queue('shut')")
            good = f"{way}-i" if field == "idempotency_key" else case.good
            job = getattr(ways, way)(field, good)
            seen = behind.execute(
                f"select {case.seen} from trunkline.job(%s::uuid)".encode(), (job,)
            ).fetchone()
            assert seen == (True,), way
            tokens = jobs_.cost_tokens(behind, job)
            assert tokens == (7 if field == "cost" else 0), way
            if field.endswith("_key"):
                assert getattr(ways, way)(field, good) == job, way
                behind.execute("select trunkline.cancel(%s::uuid)", (job,))
    finally:
        ways.close()


@pytest.mark.parametrize("field", REQUEST_FIELDS)
def test_a_bad_value_of_every_field_is_refused(database: Database, dsn: str, field: str) -> None:
    case = CASES[field]
    # Only a session that acts for one tenant may not say accepted.
    narrowed = make_conninfo(dsn, options="-c trunkline.tenant=acme")
    ways = Ways(narrowed if field == "accepted" else dsn)
    try:
        for way in WAYS:
            with pytest.raises((psycopg.Error, TrunklineError, UsageError)) as refused:
                getattr(ways, way)(field, case.bad)
            error = refused.value
            # The client and the command line refuse some values before they ask the server.
            if isinstance(error, (UsageError, InvalidDuration)):
                assert way in {"client", "command"}
                continue
            detail: Any = (
                json.loads(error.diag.message_detail or "{}")
                if isinstance(error, psycopg.Error)
                else getattr(error, "detail", {})
            )
            assert detail["code"] == case.code, (way, error)
            if case.code == "invalid_argument":
                assert detail["argument"] == f"p_{field}", way
            if way != "enqueue":
                assert detail["index"] == (2 if way == "enqueue_many" else 0), way
    finally:
        ways.close()
    assert database.superuser().execute("select count(*) from trunkline.jobs").fetchone() == (0,)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("priority", "high"),
        ("run_at", "soon"),
        ("delay", "a while"),
        ("max_attempts", "x"),
        ("expires_at", "soon"),
        ("tags", "x"),
        ("accepted", "perhaps"),
    ],
)
def test_a_value_of_another_type_is_refused(dsn: str, field: str, value: Any) -> None:
    ways = Ways(dsn)
    try:
        with pytest.raises(psycopg.Error) as refused:
            ways.enqueue_many(field, value)
        detail = json.loads(refused.value.diag.message_detail or "{}")
        assert (detail["code"], detail["argument"], detail["index"]) == (
            "invalid_argument",
            "p_jobs",
            2,
        )
        with pytest.raises(TrunklineError):
            ways.client(field, value)
    finally:
        ways.close()


def test_all_lists_have_the_same_fields(database: Database) -> None:
    behind = database.superuser()
    of_type = jobs_.request_fields(behind)
    (of_enqueue,) = (
        behind.execute(
            "select proargnames from pg_proc where oid = 'trunkline.enqueue'::regproc"
        ).fetchone()
        or ()
    )
    # A time or a length of time from now.
    options = {*REQUEST_FIELDS, "connection", "expires"} - {"task", "payload", "expires_at"}
    assert of_type == list(REQUEST_FIELDS) == list(CASES)
    assert of_enqueue == [f"p_{name}" for name in REQUEST_FIELDS]
    assert set(Options.__dataclass_fields__) == set(OptionArguments.__annotations__) == options
