"""An oversized argument of any function is refused, cut, or changes nothing."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

from tests.support.databases import Database
from tests.support.internals.rows import stored_characters

Connection = psycopg.Connection[Any]

# Millions of bytes or elements: without a bound such a call takes minutes, or its error does.
TEXT = "repeat('x', 4000000)"
OVERSIZED = {
    "text": TEXT,
    "jsonb": f"jsonb_build_object('key', {TEXT})",
    "text[]": "array_fill('x'::text, array[300000])",
    "uuid[]": "array_fill(gen_random_uuid(), array[300000])",
    "integer[]": "array_fill(1, array[300000])",
    "bigint[]": "array_fill(1::bigint, array[300000])",
    "boolean[]": "array_fill(true, array[300000])",
    "interval[]": "array_fill(interval '1 s', array[300000])",
    "jsonb[]": "array_fill('{}'::jsonb, array[300000])",
}
FIXED_SIZE = {
    "bigint", "boolean", "double precision", "integer", "interval",
    "timestamp with time zone", "uuid",
}  # fmt: skip
# Also by bytes where the count is small, and by count where the bytes are few.
MORE = {
    "text[]": [f"array[{TEXT}]"],
    "jsonb[]": [f"array[jsonb_build_object('type', {TEXT}, 'message', {TEXT})]"],
    "jsonb": ["(select jsonb_object_agg('k' || i, i) from generate_series(1, 100000) as i)",
              "(select jsonb_agg(i) from generate_series(1, 100000) as i)"],
}  # fmt: skip
# What a call needs besides, so that it comes to the argument in question.
ORDINARY = {
    "p_attempts": "'{1}'", "p_cron": "'@daily'", "p_job": "<job>", "p_jobs": "array[<job>]",
    "p_known": "'{}'", "p_limit text": "'api/{key}'", "p_name": "'api/x'", "p_observed": "'{}'",
    "p_payload": "'{}'", "p_payloads": "'[{}]'", "p_queue": "'default'", "p_schedule": "'s'",
    "p_setting": "'tenant_claim'", "p_task": "'known'", "p_tasks jsonb": "'[]'", "p_value": "'x'",
    "p_worker": "'w'", "p_attempt": "1", "p_grant": "gen_random_uuid()", "p_priority": "1",
    "p_max_depth": "9", "p_jobs jsonb": "'[]'", "p_alias": "'old'",
    "p_hash": "repeat('0', 64)", "p_role": "'reader'",
    "p_duty": "'d'", "p_enabled": "true", "p_every": "'1 hour'", "p_function": "'pg_catalog.now'",
    "p_workflow": "gen_random_uuid()", "p_step": "'s'",
    "p_graph": """'{"name": "w", "steps": []}'""",
    "p_filter": """'{"task": "nobody"}'""", "p_since": "now()",
    "p_total": "1", "p_place": "1", "p_places": "'{1}'",
    "p_names": "'{a}'", "p_keys": "'{#1}'", "p_hashes": "'{0}'", "p_results": "array['1'::jsonb]",
    "p_kind": "'event'", "p_key": "'k'", "p_steps": "'[]'", "p_result": "'1'",
    "p_artifact": "gen_random_uuid()", "p_bytes": "1", "p_path": "'x'",
    "p_sha256": "repeat('0', 64)",
    "p_paths": "'{x}'", "p_cursor text": "'x'", "p_cursor uuid": "null", "p_missing": "'{}'",
    "p_found": "'{}'", "p_retention": "'1 day'", "p_tenant": "'a'", "p_max_bytes": "1",
    "p_numbers": "'{1}'", "p_chunks": "'{x}'", "p_ids": "'{}'", "p_workflows": "'{}'",
}  # fmt: skip
# Above this nothing that was sent in is stored or sent back.
BOUND = 200_000

_ARGUMENTS = """
select p.proname, a.name, format_type(t.oid, null),
  p.pronargdefaults >= p.pronargs - a.place + 1 as optional
from pg_proc as p
cross join lateral unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[])
  with ordinality as a (name, type, place)
join pg_type as t on t.oid = a.type
where p.pronamespace = 'trunkline'::regnamespace and p.prokind = 'f'
order by p.proname, a.place
"""


@pytest.fixture
def connection(database: Database) -> Connection:
    connection = database.superuser()
    connection.execute("set statement_timeout = '30s'")
    connection.execute("""select trunkline.set_limit('api/{key}', '{"breaker_failures": 9}')""")
    connection.execute("select trunkline.register_task('known')")
    connection.execute("select trunkline.register_worker('w')")
    connection.execute("select trunkline.enqueue('known')")
    # Without the sweep its reports change nothing.
    connection.execute("select trunkline.take_sweep('w')")
    return connection


def call(function: str, arguments: list[Any], chosen: str, value: str, job: str) -> str:
    parts = []
    for _, name, kind, optional in arguments:
        if name == chosen:
            parts.append(f"{name} => {value}")
        elif not optional:
            ordinary = ORDINARY.get(f"{name} {kind}", ORDINARY.get(name))
            assert ordinary is not None, f"{function} needs {name}: add it to ORDINARY"
            parts.append(f"{name} => {ordinary}".replace("<job>", f"'{job}'::uuid"))
    return f"select * from trunkline.{function}({', '.join(parts)})"


def refused(connection: Connection, query: str) -> psycopg.Error | None:
    try:
        with connection.transaction():
            connection.execute(query.encode())
    except psycopg.Error as error:
        return error
    return None


def test_every_argument_of_every_function_is_bounded(connection: Connection) -> None:
    claimed = connection.execute("select job_id::text from trunkline.claim('w')").fetchone()
    assert claimed is not None
    functions: dict[str, list[Any]] = {}
    for row in connection.execute(_ARGUMENTS):
        functions.setdefault(row[0], []).append(row)
    tried = 0
    before = stored_characters(connection)
    for function, arguments in functions.items():
        for _, name, kind, _ in arguments:
            known = kind in FIXED_SIZE
            assert known or kind in OVERSIZED, f"{function}.{name} is a {kind}: add it to OVERSIZED"
            values = [] if known else [OVERSIZED[kind], *MORE.get(kind, [])]
            for value in values:
                tried += 1
                place = (function, name, value[:40])
                query = call(function, arguments, name, value, claimed[0])
                with connection.transaction(force_rollback=True):
                    refusal = refused(connection, query)
                    if refusal is None:
                        assert stored_characters(connection) - before < BOUND, place
                        continue
                assert (refusal.sqlstate or "").startswith("TL"), (place, refusal)
                detail = refusal.diag.message_detail or ""
                assert len(detail) < BOUND, place
                assert json.loads(detail)["code"], place
    assert tried > 80


def test_many_keys_of_a_limit_are_refused_at_once(connection: Connection) -> None:
    """130 keys of 3 MB were put together first, for twenty seconds and more."""
    connection.execute("set statement_timeout = '5s'")
    name = "/".join(f"{{k{number}}}" for number in range(130))
    keys = (
        "(select jsonb_object_agg('k' || i, repeat('x', 1000000)) from generate_series(0, 129) i)"
    )
    for function in ("acquire(%s, p_keys => {})", "observe_limit(%s, '{{}}', {})"):
        query = f"select trunkline.{function.format(keys)}"
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(query.encode(), (name,))
        assert refused.value.sqlstate == "TL028"
