"""Rows of every kind, left by public functions, and how all of them are read."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from tests.support.calls import Calls
from tests.support.waiting import until

__all__ = ["empty_tables", "fill", "read_all"]

_LARGE = {"text": "x" * 5000}
_TABLES = """
select c.relname
from pg_class as c
where c.relnamespace = 'trunkline_internal'::regnamespace
  and c.relkind in ('r', 'p') and not c.relispartition
order by 1
"""
# Every installation and upgrade writes these: its own record, and when duties ran.
_OWN = {"schema_migrations", "schema_release", "installers", "duties", "partitions"}


def fill(connection: psycopg.Connection[Any]) -> None:
    """Leave rows in all tables; the attempts that run belong to worker ``held``."""
    calls = Calls(connection)
    calls.register("plain", audit=True)
    calls.register("doomed", max_attempts=1)
    calls.register("paid", limits=["api", "budget"], cost={"tokens": 100}, lease="1 hour")
    calls.register("wide", limits=["wide"], lease="1 hour")
    calls.register("broken", limits=["broken"])
    calls.register("shrunk", limits=["user/{user}"])
    _limits(connection)
    connection.execute("select trunkline.set_setting('lease', '1 hour')")
    connection.execute("select trunkline.pause_queue('halted', 'strike')")
    connection.execute("select trunkline.set_schedule('nightly', '0 3 * * *', 'plain')")
    for worker in ("past", "held", "files", "lists"):
        connection.execute(
            "select trunkline.register_worker(p_worker => %s, p_pulse_interval => '1 hour')",
            (worker,),
        )
    connection.execute(
        "select trunkline.create_service_key('abcdefghijkl', repeat('0', 64), 'deploy', 'reader')"
    )
    connection.execute("select trunkline.sleep('past', array['default'])")
    _ended(calls)
    _files(connection, calls)
    calls.fill(2, task="plain", queue="started")
    calls.fill(2, task="paid", queue="started")
    calls.fill(2, task="wide", queue="started")
    assert len(calls.claim("held", 10, queues=["started"]).jobs) == 6
    calls.fill(2, task="plain", queue="later", payload=_LARGE)
    calls.enqueue("plain", queue="later", delay="1 hour", unique_key="one", tenant="acme")
    calls.enqueue("plain", queue="later", idempotency_key="first", payload={"n": 1})
    calls.enqueue("paid", queue="later", tags=["kept"])
    calls.enqueue("shrunk", queue="later", payload={"user": "ann"}, cost={"tokens": 900})
    _limit(connection, "user/{user}", tokens_per_hour=100)
    connection.execute("select trunkline.acquire('api', %s)", (Jsonb({"tokens": 1}),))
    _workflow(calls)
    _steps(connection, calls)


def _steps(connection: psycopg.Connection[Any], calls: Calls) -> None:
    """Leave a job that has recorded a step and waits for an event, and an event for a key."""
    calls.enqueue("plain", queue="stepped")
    (attempt,) = calls.claim("held", queues=["stepped"]).attempts
    connection.execute(
        "select trunkline.record_steps('held', %s, %s, '{1}', '{read}', '{#1}', '{7}', '{1}')",
        ([attempt.job], [attempt.number]),
    )
    connection.execute(
        "select trunkline.begin_once('held', %s, %s, 2, 'base')", (attempt.job, attempt.number)
    )
    connection.execute(
        "select trunkline.begin_wait('held', %s, %s, 3, 'event', 'go', '#1')",
        (attempt.job, attempt.number),
    )
    connection.execute(
        "select trunkline.emit('held', %s, %s, '{1}', '{first words}')",
        ([attempt.job], [attempt.number]),
    )
    connection.execute("select trunkline.follow(%s)", ([attempt.job],))
    calls.batch("suspend", "held", [attempt])
    connection.execute("select trunkline.send_event('paid', '1', p_key => 'order')")


def read_all(superuser: psycopg.Connection[Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table that an upgrade must leave alone, in a stable order."""
    names = [name for (name,) in superuser.execute(_TABLES) if name not in _OWN]
    return {
        name: [
            row
            for (row,) in superuser.execute(
                f"select to_jsonb(t) from trunkline_internal.{name} as t"
                " order by to_jsonb(t)::text".encode()
            )
        ]
        for name in names
    }


def empty_tables(rows: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the tables without a row: `fill` should leave one in each."""
    return sorted(name for name, found in rows.items() if not found)


def _limit(connection: psycopg.Connection[Any], name: str, **parts: Any) -> None:
    connection.execute("select trunkline.set_limit(%s, %s)", (name, Jsonb(parts)))


def _limits(connection: psycopg.Connection[Any]) -> None:
    _limit(connection, "api", requests_per_minute=1000, tokens_per_hour=100_000, concurrency=10)
    _limit(connection, "budget", quota=100_000, quota_unit="tokens", quota_window="30 days")
    _limit(connection, "wide", requests_per_hour=1_000_000)
    _limit(connection, "broken", concurrency=5, breaker_failures=1)
    _limit(connection, "user/{user}", tokens_per_hour=1000)


def _ended(calls: Calls) -> None:
    """Leave completed, cancelled and dead jobs, usage and a breaker that opened."""
    calls.fill(2, task="plain", payload=_LARGE)
    calls.fill(1, task="doomed")
    calls.fill(1, task="paid", tenant="acme")
    calls.fill(1, task="broken")
    cancelled = calls.enqueue("plain", delay="1 hour").job_id
    calls.change("cancel", cancelled, "not needed")
    error = Jsonb({"type": "ValueError", "message": "no"})
    claim = calls.claim("past", 10)
    for row, attempt in zip(claim.rows, claim.attempts, strict=True):
        if row.task in {"doomed", "broken"}:
            calls.batch("fail", "past", [attempt], errors=[error])
            continue
        if row.task == "paid":
            actual = Jsonb({"tokens": 50, "cost": 0.5})
            calls.value("select trunkline.settle_job(%s, %s, %s)", row.job_id, row.attempt, actual)
        calls.batch("complete", "past", [attempt], results=[Jsonb(_LARGE)])
    until(lambda: _rolled_up(calls), "the usage is part of the sums of the day")


def _workflow(calls: Calls) -> None:
    """Leave a live workflow, one of whose jobs expired while another session locked it."""
    items: list[dict[str, Any]] = [{"payload": {"n": n}} for n in range(2)]
    items.append({"expires_at": str(calls.clock() + timedelta(milliseconds=300))})
    many = {"name": "many", "task": "plain", "queue": "flow", "items": items}
    last = {"name": "last", "task": "plain", "queue": "flow", "after": ["many"]}
    graph = {"name": "report", "unique_key": "one", "steps": [many, last]}
    calls.value("select trunkline.start_workflow(%s)", Jsonb(graph))
    [one, _] = calls.claim("held", 2, queues=["flow"]).attempts
    with psycopg.connect(calls.connection.info.dsn) as other:
        Calls(other).batch("complete", "held", [one])
        until(
            lambda: calls.value("select rows from trunkline.run_duty('expire')") == 1, "the expiry"
        )


def _files(connection: psycopg.Connection[Any], calls: Calls) -> None:
    """Leave an artifact, a staged file, a list for a map, a file to remove, and a quota."""
    connection.execute("select trunkline.set_storage_quota('acme', 1000000)")
    connection.execute("select trunkline.set_artifact_retention('txt', '1 day')")
    calls.fill(2, task="plain", queue="files", tenant="acme")
    done, left = calls.claim("files", 2, queues=["files"]).attempts
    for attempt, name in ((done, "a.txt"), (done, "a.txt"), (left, "b.txt")):
        path = calls.value(
            "select path from trunkline.begin_artifact(%s, %s, %s, %s)",
            attempt.worker,
            attempt.job,
            attempt.number,
            name,
        )
        calls.value(
            "select trunkline.stage_artifact(%s, %s, %s, %s, 5, %s)",
            attempt.worker,
            attempt.job,
            attempt.number,
            path,
            "0" * 64,
        )
    calls.batch("complete", "files", [done])
    listed = {"name": "list", "task": "plain", "queue": "lists"}
    graph = {"name": "map", "steps": [listed, {"name": "m", "task": "plain", "map": "list"}]}
    calls.value("select trunkline.start_workflow(%s)", Jsonb(graph))
    [mapped] = calls.claim("lists", 1, queues=["lists"]).attempts
    calls.value(
        "select trunkline.stage_elements('lists', %s, 1, (trunkline.begin_artifact("
        "'lists', %s, 1, 'list.json')).artifact_id, 1, 0, '[1]')",
        mapped.job,
        mapped.job,
    )
    calls.value("select trunkline.run_duty('decide_workers')")


def _rolled_up(calls: Calls) -> bool:
    """Add up the usage, which waits for transactions that other tests have open on the server."""
    calls.value("select trunkline.sweep_buckets()")
    return bool(calls.value("select exists (select from trunkline_internal.usage_days)"))
