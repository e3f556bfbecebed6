"""Values that are valid but beyond all bounds get a refusal, and never stop the work of others."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.support.databases import Database

LONG = "170000000 years"
REFUSED = {
    "a lease of ages": ("TL022", f"select trunkline.register_task('t', p_lease => '{LONG}')"),
    "a hard limit of ages": (
        "TL022",
        f"select trunkline.register_task('t', p_hard_limit => '{LONG}')",
    ),
    "a profile without end": (
        "TL022",
        "select trunkline.register_task('t', p_profile => repeat('x', 201))",
    ),
    "an empty profile": ("TL022", "select trunkline.register_task('t', p_profile => '')"),
    "a back-off below all clocks": (
        "TL022",
        """select trunkline.register_task('t', p_backoff => '{"base": 1e-400}')""",
    ),
    "a pulse of ages": (
        "TL028",
        f"select trunkline.register_worker('w', p_pulse_interval => '{LONG}')",
    ),
    "a worker that tells too much": (
        "TL028",
        "select trunkline.register_worker('w', p_detail => to_jsonb(repeat('x', 70000)))",
    ),
    "a delay of ages": ("TL028", f"select trunkline.enqueue('known', p_delay => '{LONG}')"),
    "a delay of ages in a batch": (
        "TL028",
        f"""select trunkline.enqueue_many('[{{"task": "known", "delay": "{LONG}"}}]')""",
    ),
    "a time before computers": (
        "TL028",
        "select trunkline.enqueue('known', p_run_at => '4000-01-01 BC')",
    ),
    "a time after all": ("TL028", "select trunkline.enqueue('known', p_run_at => '200000-01-01')"),
    "tags of tags": (
        "TL028",
        "select trunkline.enqueue('known', p_tags => array[['a', 'b'], ['c', 'd']])",
    ),
    "tags of tags in a batch": (
        "TL028",
        """select trunkline.enqueue_many('[{"task": "known", "tags": [["a"], ["b"]]}]')""",
    ),
    "a tag without end": (
        "TL028",
        "select trunkline.enqueue('known', p_tags => array[repeat('x', 201)])",
    ),
    "keys longer than an index takes": (
        "TL028",
        "select trunkline.enqueue('known', p_unique_key => repeat('\U0001f600', 251))",
    ),
    "queues of queues": ("TL028", "select trunkline.claim('w', array[['a', 'b'], ['c', 'd']], 1)"),
    "jobs of jobs": (
        "TL008",
        "select trunkline.complete('w', array[array[gen_random_uuid()]], array[array[1]])",
    ),
    "a snooze of ages": (
        "TL028",
        f"select trunkline.snooze('w', array[gen_random_uuid()], '{{1}}', '{{{LONG}}}')",
    ),
    "a setting of ages": (
        "TL021",
        f"select trunkline.set_setting('idempotency_retention', '{LONG}')",
    ),
}


@pytest.fixture
def connection(database: Database) -> psycopg.Connection[Any]:
    connection = database.connect()
    connection.execute("select trunkline.register_task('known')")
    return connection


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_with_its_code(connection: psycopg.Connection[Any], case: str) -> None:
    sqlstate, call = REFUSED[case]
    with pytest.raises(psycopg.Error) as caught:
        connection.execute(call.encode())
    assert caught.value.sqlstate == sqlstate, caught.value
    assert json.loads(caught.value.diag.message_detail or "")["code"]
    assert caught.value.diag.message_hint


def test_every_setting_that_is_a_time_has_bounds(connection: psycopg.Connection[Any]) -> None:
    unbounded = connection.execute(
        "select name from trunkline.settings where kind = 'interval'"
        " and (minimum is null or maximum is null)"
    ).fetchall()
    assert unbounded == []


def test_the_longest_that_is_accepted_works(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "select trunkline.register_task('long', p_lease => '365 days', p_hard_limit => '3650 days')"
    )
    tenant, key = "\U0001f600" * 100, "\U0001f600" * 250
    connection.execute(
        "select trunkline.enqueue('long', p_tenant => %s, p_unique_key => %s,"
        " p_idempotency_key => %s)",
        (tenant, key, key),
    )
    row = connection.execute(
        "select job_id, attempt from trunkline.claim('w', p_limit => 10)"
    ).fetchone()
    assert row is not None
    verdict = connection.execute(
        "select verdict from trunkline.heartbeat('w', array[%s]::uuid[], array[%s])", row
    ).fetchone()
    assert verdict == ("ok",)


def test_a_month_in_a_lease_is_thirty_days(connection: psycopg.Connection[Any]) -> None:
    connection.execute("select trunkline.register_task('month', p_lease => '1 mon -29 days')")
    row = connection.execute("select lease from trunkline.tasks where task = 'month'").fetchone()
    assert row is not None
    assert row[0].total_seconds() == 86400


def test_a_compressed_payload_counts_in_full(connection: psycopg.Connection[Any]) -> None:
    connection.execute("create temporary table large (payload jsonb)")
    connection.execute("insert into large select jsonb_build_object('a', repeat('x', 5000000))")
    with pytest.raises(psycopg.Error) as caught:
        connection.execute("select trunkline.enqueue('known', p_payload => payload) from large")
    assert caught.value.sqlstate == "TL003"


@pytest.mark.parametrize(
    "damage",
    [
        '{"lanes": 5}',
        '{"lanes": {"default/0": ["x"]}}',
        '{"lanes": {"default/0": [1.5]}}',
        '{"lanes": {"default/0": 7}}',
        '{"lanes": {"/due": ["x"]}}',
        '{"lanes": {"default/0": [1e30]}}',
        '{"late": 5}',
        '{"late": {"x": {"default/0": 1}}}',
        '{"late": {"7": {"default/0": "x"}}}',
    ],
)
def test_a_damaged_position_is_taken_as_none(
    connection: psycopg.Connection[Any], damage: str
) -> None:
    connection.execute("select trunkline.enqueue('known')")
    claim = "select job_id, position from trunkline.claim('w', array['default'], 10, null, %s)"
    connection.execute("select trunkline.pause_queue('default')")
    before = connection.execute(claim, ("{}",)).fetchone()
    assert before is not None
    connection.execute("select trunkline.resume_queue('default')")
    damaged = json.dumps({"lanes": {}} | before[1] | json.loads(damage))
    rows = connection.execute(claim, (damaged,)).fetchall()
    assert rows[0][0] is not None
    assert rows[-1][1]["lanes"]
