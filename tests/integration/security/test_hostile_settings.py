"""A session's own settings change neither what the engine answers nor what it does for others."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support import databases
from tests.support.databases import Database
from tests.support.internals.rows import contents
from tests.support.servers import Server

Connection = psycopg.Connection[Any]

# What any login may set and what functions could depend on.
HOSTILE = {
    "array_nulls": "off",
    "bytea_output": "escape",
    "datestyle": "German, DMY",
    "default_statistics_target": "1",
    "default_toast_compression": "pglz",
    "enable_hashagg": "off",
    "enable_hashjoin": "off",
    "enable_indexonlyscan": "off",
    "enable_indexscan": "off",
    "enable_nestloop": "off",
    "escape_string_warning": "off",
    "extra_float_digits": "-15",
    "from_collapse_limit": "1",
    "intervalstyle": "sql_standard",
    "jit_above_cost": "0",
    "join_collapse_limit": "1",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "plan_cache_mode": "force_custom_plan",
    "plpgsql.extra_errors": "all",
    "quote_all_identifiers": "on",
    "search_path": "pg_temp",
    "standard_conforming_strings": "off",
    # Half a day is skipped in March and comes twice in October.
    "timezone": "AAA0BBB-12,M3.5.0/0,M10.5.0/0",
    "transform_null_equals": "on",
    "work_mem": "64kB",
    "xmloption": "document",
}

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-")
# Intervals and fractions are printed as the session wants them; the rest differs by chance.
_APART = {
    "every", "lease", "hard_limit", "backoff_base", "backoff_cap", "quota_window", "window",
    "breaker_window", "breaker_probe_after", "backpressure_delay", "position", "oldest_ready_age",
    "pulse_interval", "age", "ratio", "liveness_age", "heartbeat_age", "detail_bytes", "duration",
    "rate_per_hour", "pid", "jitter_seconds", "delay_seconds",
    "backoff_factor", "backoff_jitter",
    "progress_age", "deferred_age", "runs", "rows", "succeeded_at",
}  # fmt: skip

CALLS = [
    """trunkline.set_limit('api/{tenant}:{model}', '{"requests_per_minute": 9, "quota": 100,
      "quota_window": "30 days", "breaker_failures": 3, "breaker_window": "10 minutes"}')""",
    """trunkline.set_limit('fair:bulk/{tenant}', '{"weight": 1}')""",
    """trunkline.register_task('plain', p_lease => '90 seconds', p_hard_limit => '1 day',
      p_backoff => '{"base": 0.5, "factor": 1.5, "cap": 60, "jitter": 0.25}', p_audit => true)""",
    """trunkline.register_tasks('[{"task": "plain", "lease": "90 seconds",
      "backoff": {"base": 0.5, "factor": 1.5, "cap": 60, "jitter": 0.25}}]')""",
    """trunkline.register_task('api', p_limits => array['api/{tenant}:{model}'])""",
    """trunkline.register_task('bulk', p_limits => array['fair:bulk/{tenant}'])""",
    r"""trunkline.enqueue('plain', '{"text": "a\\nb \u00e9"}', p_tags => '{one,two}',
      p_unique_key => 'key', p_run_at => '2026-01-01T00:00:00Z')""",
    """trunkline.enqueue('plain', p_unique_key => 'key')""",
    """trunkline.enqueue('plain', p_delay => '90 seconds', p_priority => 3)""",
    """trunkline.enqueue_many('[{"task": "plain"}, {"task": "api", "tenant": "a:b/c",
      "payload": {"model": "m"}}, {"task": "bulk",
      "tenant": "t", "run_at": "2026-01-01T00:00:00Z"}]')""",
    """trunkline.enqueue_batch('plain', '[{}, {"n": 1.25}]')""",
    """trunkline.enqueue('api', '{"model": "m/1"}', p_tenant => 'a')""",
    """trunkline.register_worker('w', array['default'], p_pulse_interval => '5 seconds')""",
    """trunkline.sleep('w', array['default'])""",
    """trunkline.claim('w', null, 20)""",
    """trunkline.heartbeat('w', <jobs>, <attempts>)""",
    """trunkline.progress('w', <job 1>, 1, 50, 'half', 'way')""",
    """trunkline.acquire('api/{tenant}:{model}', p_keys => '{"model": "m"}', p_tenant => 'z')""",
    """trunkline.observe_limit('api/z:m', '{"remaining_requests": 1, "reset_requests": 30}')""",
    """trunkline.complete('w', array[<job 1>], '{1}', array['{"done": 1.5}'::jsonb])""",
    """trunkline.fail('w', array[<job 2>], '{1}',
      array['{"type": "E", "message": "no"}'::jsonb])""",
    """trunkline.snooze('w', array[<job 3>], '{1}', array['1 minute'::interval])""",
    """trunkline.release('w', array[<job 4>], '{1}')""",
    """trunkline.set_schedule('ten past', '10 * * * *', 'plain', p_time_zone => 'Europe/Paris')""",
    """trunkline.set_schedule('offset', '@hourly', 'plain', p_time_zone => 'Etc/GMT+5')""",
    """trunkline.next_due('30 2 * mar,oct sun', 'Europe/Paris', '2026-03-01T00:00:00Z', 12)""",
    """trunkline.next_due('0 0 1 * *', 'America/New_York', '2026-01-01T00:00:00Z', 12)""",
    """trunkline.next_due('*/7\t9-17  * * 1-5', 'Etc/GMT-3', '2026-10-24T00:00:00Z', 40)""",
    """trunkline.set_setting('lease', '00:10:00')""",
    """trunkline.set_setting('finished_retention', '60 days')""",
    "move",
    """trunkline.run_schedules()""",
    """trunkline.reclaim()""",
    # All of them are due then, however fast the machine is.
    "move",
    """trunkline.run_duties()""",
    """trunkline.promote()""",
    """trunkline.claim('w2', null, 20)""",
    """trunkline.explain(<job 3>)""",
    """trunkline.job(<job 1>)""",
    """trunkline.job(<job 2>)""",
    """trunkline.list_jobs(p_limit => 50)""",
    """trunkline.find_jobs(p_limit => 50)""",
    """trunkline.dead_letter_groups()""",
    """trunkline.recent_activity('2020-01-01T00:00:00Z')""",
    """trunkline.search_jobs('{"tag": "one", "created_from": "2020-02-01 12:00"}')""",
    """trunkline.count_jobs('{"state": ["ready", "dead"], "finished_from": "2020-02-01"}')""",
    """trunkline.queue_sizes()""",
    """trunkline.deferred_jobs()""",
    """trunkline.usage_of_job(<job 5>)""",
    """trunkline.retry(<job 1>)""",
    """trunkline.health()""",
    *(
        f"trunkline.{view}"
        for view in (
            "breakers", "dead_letters", "duties", "events", "buckets", "jobs", "limits",
            "operator_log", "queues",
            "quotas", "reclaim_history", "schedules", "settings", "usage", "stale_monitor",
            "tasks", "wanted_workers", "workers",
        )
    ),
]  # fmt: skip


def normal(value: Any, key: str = "") -> Any:
    """Without what differs from one run to the next; fixed due times are kept as instants."""
    if key in _APART:
        return None if value is None else "set"
    if isinstance(value, dict):
        return {name: normal(part, name) for name, part in value.items()}
    if isinstance(value, list):
        parts = [normal(part, key) for part in value]
        # Jobs that were enqueued within one millisecond come in any order.
        return sorted(parts, key=json.dumps) if key == "jobs" else parts
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, str):
        return "time" if _TIME.match(value) else "uuid" if _UUID.search(value) else value
    return value


def answers(database: Database, session: Connection) -> list[tuple[str, Any]]:
    """What the calls answer, each as JSON, and what it was that answered."""
    jobs: list[str] = []
    found: list[tuple[str, Any]] = []
    for call in CALLS:
        if call == "move":
            database.move_time("90 minutes")
            continue
        filled = call
        for place, job in enumerate(jobs, 1):
            filled = filled.replace(f"<job {place}>", f"'{job}'::uuid")
        filled = filled.replace("<jobs>", f"'{{{','.join(jobs)}}}'::uuid[]")
        filled = filled.replace("<attempts>", f"'{{{','.join('1' * len(jobs))}}}'::integer[]")
        # Without backslashes in the text, whose meaning is the session's own affair.
        statement = f"select to_json(r)::text from {filled} as r".replace('\'{"text"', 'E\'{"text"')
        try:
            rows = [json.loads(row[0] or "null") for row in session.execute(statement.encode())]
        except psycopg.Error as error:
            found.append((call, f"{error.sqlstate}: {error}"))
            continue
        if call.startswith("trunkline.claim('w',"):
            rows.sort(key=lambda row: (row["task"], row["job_id"]))
            jobs = [row["job_id"] for row in rows]
        if "next_due" in call:
            instants = session.execute(
                f"select extract(epoch from r)::bigint from {filled} as r".encode()
            )
            found.append((call, [row[0] for row in instants]))
            continue
        told = [json.dumps(normal(row), sort_keys=True) for row in rows]
        found.append((call, sorted(told)))
    return found


def strip(value: Any) -> Any:
    """Without times and ids, which differ from one database to the other."""
    if isinstance(value, (list, tuple)):
        return [strip(part) for part in value]
    return None if isinstance(value, (datetime, UUID)) else value


def own_partitions(superuser: Connection) -> list[tuple[Any, ...]]:
    return superuser.execute(
        "select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_class as c"
        " where c.relispartition and c.relkind = 'r' order by 1"
    ).fetchall()


@pytest.fixture
def other(server: Server, template: str) -> Any:
    with databases.fresh(server, template) as made:
        yield made


def test_a_hostile_session_gets_the_same_answers(database: Database, other: Database) -> None:
    # As the superuser, who may call all functions; whoever calls them, they run as the owner.
    plain, hostile = database.superuser(), other.superuser()
    for made in (database, other):
        made.move_time("0")
    for name, value in HOSTILE.items():
        hostile.execute("select pg_catalog.set_config(%s, %s, false)", (name, value))
    expected, got = answers(database, plain), answers(other, hostile)
    for (call, wanted), (_, answer) in zip(expected, got, strict=True):
        assert not isinstance(wanted, str), (call, wanted)
        assert answer == wanted, call
    stored: list[Any] = []
    for made in (database, other):
        observer = made.superuser()
        assert (
            observer.execute("select schedule from trunkline.schedules where paused").fetchall()
            == []
        )
        assert (
            observer.execute("select duty from trunkline.duties where failures > 0").fetchall()
            == []
        )
        stored.append(
            [contents(observer, name) for name in ("tasks", "limits", "settings", "schedules")]
        )
    assert strip(stored[0]) == strip(stored[1])
    assert own_partitions(other.superuser()) == own_partitions(database.superuser())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default_transaction_read_only", "on"),
        ("default_transaction_isolation", "serializable"),
        ("row_security", "off"),
        ("statement_timeout", "1ms"),
        ("standard_conforming_strings", "off"),
        ("plpgsql.extra_errors", "all"),
        ("timezone", "Pacific/Apia"),
    ],
)
def test_no_session_pauses_schedules_or_stops_duties_for_others(
    database: Database, name: str, value: str
) -> None:
    """What such a session cannot do, the next one does."""
    operator = database.connect("trunkline_operator")
    operator.execute("select trunkline.register_task('report')")
    for zone in ("Etc/GMT+5", "Europe/Paris", "UTC"):
        operator.execute(
            "select trunkline.set_schedule(%s, '* * * * *', 'report', p_time_zone => %s)",
            (zone, zone),
        )
    database.move_time("2 minutes")
    hostile = database.connect("trunkline_worker")
    hostile.execute("select pg_catalog.set_config(%s, %s, false)", (name, value))
    for call in ("trunkline.run_schedules()", "trunkline.run_duties()", "trunkline.reclaim()"):
        with suppress(psycopg.Error):
            hostile.execute(f"select {call}".encode())
    worker = database.connect("trunkline_worker")
    worker.execute("select trunkline.run_schedules()")
    rows = operator.execute("select paused, last_error from trunkline.schedules").fetchall()
    assert rows == [(False, None)] * 3
    jobs = operator.execute("select count(*) from trunkline.jobs where task = 'report'").fetchone()
    assert jobs == (3,)
