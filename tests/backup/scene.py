"""A database with a bit of everything, what can be counted in it, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support.calls import Calls
from tests.support.processes import trunkline
from tests.support.waiting import until
from tests.support.worker_process import WorkerProcess
from trunkline.embedded import EmbeddedServer, acquire

__all__ = ["account", "charge", "environment", "fill", "go_on", "run", "server"]

# Nothing here survives the test, so nothing needs to reach the disk.
_SETTINGS = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
# The schedule is due once a minute, and the duties that bring attempts back take a quarter of one.
_PATIENCE = 150.0


@contextmanager
def server(home: Path, bindir: Path | None = None) -> Iterator[EmbeddedServer]:
    """A server that nobody used before, whose transaction ids start low."""
    with acquire(home, bindir=bindir, settings=_SETTINGS) as started:
        yield started


def environment(dsn: str | None) -> dict[str, str]:
    return {"TRUNKLINE_DSN": dsn} if dsn else {}


def run(home: Path, *arguments: object, dsn: str | None = None) -> str:
    """Run a command that must succeed."""
    done = trunkline(home, *map(str, arguments), environment=environment(dsn))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fill(dsn: str) -> None:
    """Leave waiting, running, scheduled, finished and dead jobs, and limits in use."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        calls = Calls(connection)
        # Far beyond the ids of a new server.
        connection.execute(
            "do $$ begin"
            " for i in 1 .. 6000 loop perform pg_current_xact_id(); commit; end loop;"
            " end $$"
        )
        connection.execute("create schema shop")
        connection.execute("create table shop.orders (id integer generated always as identity)")
        connection.execute("insert into shop.orders select from generate_series(1, 7)")
        connection.execute("select trunkline.set_setting('reclaim_jitter', '0 seconds')")
        connection.execute(
            "grant usage on schema shop to trunkline_owner;"
            "create function shop.tidy() returns integer language sql as 'select 1';"
            "select trunkline.add_duty('tidy', 'shop.tidy', '1 second')"
        )
        for name, parts in (
            ("slots", {"concurrency": 2}),
            ("hourly", {"requests_per_hour": 1000, "tokens_per_hour": 100_000}),
            ("budget", {"quota": 100_000, "quota_unit": "tokens", "quota_window": "30 days"}),
        ):
            connection.execute("select trunkline.set_limit(%s, %s)", (name, Jsonb(parts)))
        calls.register("note", audit=True)
        calls.register("doomed", max_attempts=1)
        calls.register("guarded", limits=["slots"])
        connection.execute(
            "select trunkline.set_schedule('tick', '* * * * *', 'note', %s)",
            (Jsonb({"text": "tick"}),),
        )
        _finish_and_fail(calls)
        calls.fill(5, task="note", payload={"text": "x" * 2000})
        calls.enqueue("note", payload={"text": "soon"}, delay="2 seconds", unique_key="soon")
        calls.enqueue("note", payload={"text": "key"}, idempotency_key="first")
        connection.execute(
            "select trunkline.register_worker('lost', p_pulse_interval => '1 second')"
        )
        running = calls.claim("lost", 2, queues=["default"])
        assert len(running.jobs) == 2
        allow(connection, "shrunk", 1000)
        calls.register("shrunk", limits=["shrunk"])
        calls.fill(3, task="shrunk", cost={"tokens": 1000})
        allow(connection, "shrunk", 900)
        calls.fill(3, task="guarded", queue="narrow")
        assert len(calls.claim("lost", 3, queues=["narrow"]).jobs) == 2
        for limit in ("hourly", "budget"):
            for actual in (30, 250):
                charge(connection, limit, estimate=100, actual=actual)
        # Counts in what was settled, and adds the usage to the sums of the day.
        connection.execute("select trunkline.sweep_buckets()")
        for limit in ("hourly", "budget"):
            charge(connection, limit, estimate=100, actual=20)
            charge(connection, limit, estimate=100, actual=400)


def _finish_and_fail(calls: Calls) -> None:
    calls.fill(3, task="note", payload={"text": "done"})
    calls.fill(2, task="doomed")
    claim = calls.claim("past", 5)
    ended = [row for row in claim.rows if row.task == "note"]
    failed = [row for row in claim.rows if row.task == "doomed"]
    assert (len(ended), len(failed)) == (3, 2)
    attempts = {attempt.job: attempt for attempt in claim.attempts}
    calls.batch("complete", "past", [attempts[row.job_id] for row in ended])
    error = Jsonb({"type": "ValueError", "message": "no"})
    calls.batch("fail", "past", [attempts[row.job_id] for row in failed], errors=[error] * 2)


def allow(connection: psycopg.Connection[Any], limit: str, tokens: int) -> None:
    """Let a limit give so many tokens an hour."""
    parts = Jsonb({"tokens_per_hour": tokens})
    connection.execute("select trunkline.set_limit(%s, %s)", (limit, parts))


def charge(connection: psycopg.Connection[Any], limit: str, *, estimate: int, actual: int) -> None:
    """Call a provider: take the estimate, settle what it was."""
    row = connection.execute(
        "select granted, grant_id from trunkline.acquire(%s, %s)",
        (limit, Jsonb({"tokens": estimate})),
    ).fetchone()
    assert row is not None
    assert row[0], f"{limit} has no room"
    grant: UUID = row[1]
    connection.execute("select trunkline.settle(%s, %s)", (grant, Jsonb({"tokens": actual})))


def account(dsn: str) -> dict[str, Any]:
    """What an operator can count."""
    with psycopg.connect(dsn, autocommit=True) as connection:

        def pairs(query: str) -> dict[str, Any]:
            rows = connection.execute(query.encode()).fetchall()
            return {str(row[0]): row[1] if len(row) == 2 else row[1:] for row in rows}

        return {
            "jobs": pairs("select state, count(*) from trunkline.jobs group by 1"),
            "limits": pairs(
                "select name, in_use, requests_of_hour, tokens_of_hour, spent, waiting, set_aside"
                " from trunkline.buckets order by 1"
            ),
            "usage": pairs(
                'select "limit", sum(calls), sum(tokens) from trunkline.usage group by 1'
            ),
            "schedules": pairs("select schedule, cron from trunkline.schedules"),
            "duties": pairs("select duty, function, every, enabled from trunkline.duties"),
            "orders": pairs("select 'orders', count(*) from shop.orders"),
        }


def given(counted: Mapping[str, Any], limit: str) -> int:
    """What a limit has given out, as the limit itself counts."""
    _, _, of_hour, spent, _, _ = counted["limits"][limit]
    return int(spent if limit == "budget" else of_hour)


def booked(counted: Mapping[str, Any], limit: str) -> int:
    """The same as the usage ledger has it."""
    return int(counted["usage"][limit][1])


def go_on(dsn: str, before: dict[str, Any], log: Path, *, worker_first: bool = False) -> None:
    """Use limits, and run a real worker until nothing is left to do.

    With ``worker_first`` the usage ledger is right as soon as its duty has run.
    """
    assert before["limits"]["shrunk"][-1] == 3
    with psycopg.connect(dsn, autocommit=True) as connection:
        allow(connection, "shrunk", 10_000)
    assert account(dsn)["limits"]["shrunk"][-1] == 0
    if not worker_first:
        _charge_more(dsn, before, ledger=True)
    worker = WorkerProcess("tests.backup.app:app", environment=environment(dsn), log=log)
    try:
        if worker_first:
            with psycopg.connect(dsn, autocommit=True) as observer:
                worker.until_ready(observer)
            _charge_more(dsn, before, ledger=False)
        until(lambda: _is_done(dsn, before, worker), "all jobs ended", deadline=_PATIENCE)
    except AssertionError as error:
        error.add_note(f"{account(dsn)}\n{worker.log}")
        raise
    finally:
        worker.destroy()
    after = account(dsn)
    assert after["jobs"]["dead"] == before["jobs"]["dead"]
    for limit in ("hourly", "budget"):
        assert given(after, limit) == booked(after, limit) == given(before, limit) + 330
    assert after["limits"]["slots"][0] == 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        again = Calls(connection).enqueue("note", payload={"text": "key"}, idempotency_key="first")
        assert not again.created
        with pytest.raises(psycopg.Error) as refused:
            Calls(connection).enqueue("note", payload={"text": "new"}, idempotency_key="first")
        assert refused.value.sqlstate == "TL027"
        connection.execute("insert into shop.orders default values")


def _charge_more(dsn: str, before: dict[str, Any], *, ledger: bool) -> None:
    for limit in ("hourly", "budget"):
        start = given(before, limit)
        assert given(account(dsn), limit) == start == booked(before, limit)
        with psycopg.connect(dsn, autocommit=True) as connection:
            # The second one counts in what was settled before it.
            for actual, expected in ((30, start + 30), (300, start + 330)):
                charge(connection, limit, estimate=100, actual=actual)
                now = account(dsn)
                assert given(now, limit) == expected
                assert not ledger or booked(now, limit) == expected


def _is_done(dsn: str, before: dict[str, Any], worker: WorkerProcess) -> bool:
    """Whether every job of before has ended well, the schedule ran and usage was summed up."""
    worker.require_alive()
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "select count(*) filter (where state not in ('completed', 'dead')),"
            " count(*) filter (where state = 'completed' and tags @> '{schedule:tick}'),"
            " count(*) filter (where state = 'completed')"
            " from trunkline.jobs"
        ).fetchone()
        swept = connection.execute(
            "select bool_and(succeeded_at > clock_timestamp() - interval '1 minute')"
            " from trunkline.duties where duty in ('sweep_buckets', 'reclaim', 'tidy')"
        ).fetchone()
    assert row is not None
    assert swept is not None
    left, ticked, completed = row
    expected = sum(before["jobs"].values()) - before["jobs"]["dead"]
    return left == 0 and ticked > 0 and completed >= expected + ticked and bool(swept[0])
