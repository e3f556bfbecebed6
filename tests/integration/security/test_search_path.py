"""What a caller puts in front of the path of names is never called with the owner's rights."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server

# Names that the engine uses unqualified because its path is pinned, each a trap.
TRAPS = """
create function {schema}.length(text) returns integer language plpgsql
  as $$ begin raise exception 'trapped by length'; end $$;
create function {schema}.jsonb_typeof(jsonb) returns text language plpgsql
  as $$ begin raise exception 'trapped by jsonb_typeof'; end $$;
create function {schema}.cardinality(anyarray) returns integer language plpgsql
  as $$ begin raise exception 'trapped by cardinality'; end $$;
create function {schema}.now() returns timestamptz language plpgsql
  as $$ begin raise exception 'trapped by now'; end $$;
create function {schema}.clock_timestamp() returns timestamptz language plpgsql
  as $$ begin raise exception 'trapped by clock_timestamp'; end $$;
create function {schema}.current_setting(text, boolean) returns text language plpgsql
  as $$ begin raise exception 'trapped by current_setting'; end $$;
create function {schema}.same(text, text) returns boolean language plpgsql
  as $$ begin raise exception 'trapped by ='; end $$;
create function {schema}.below(interval, interval) returns boolean language plpgsql
  as $$ begin raise exception 'trapped by <'; end $$;
create operator {schema}.= (leftarg = text, rightarg = text, function = {schema}.same);
create operator {schema}.< (leftarg = interval, rightarg = interval, function = {schema}.below);
"""
TEMPORARY = (
    "waiting", "running", "finished", "dead", "tasks", "queues", "lanes", "settings", "events",
    "bodies", "unique_keys", "idempotency_keys", "workers", "duties", "schedules", "pg_roles",
    "pg_proc", "pg_class",
)  # fmt: skip
LIFE = (
    ("trunkline_producer", "select trunkline.register_task('report', p_lease => '1 minute')"),
    ("trunkline_producer", "select trunkline.enqueue('report', p_unique_key => 'k')"),
    ("trunkline_producer", """select trunkline.enqueue_many('[{"task": "report"}]')"""),
    ("trunkline_producer", "select * from trunkline.jobs"),
    ("trunkline_worker", "select trunkline.register_worker('w')"),
    ("trunkline_worker", "select trunkline.claim('w', p_limit => 10, p_position => '{}')"),
    ("trunkline_worker", "select trunkline.heartbeat('w', '{}', '{}')"),
    ("trunkline_worker", "select trunkline.complete('w', array[gen_random_uuid()], '{1}')"),
    ("trunkline_worker", "select trunkline.run_duties()"),
    ("trunkline_operator", "select trunkline.set_setting('crash_limit', '4')"),
    ("trunkline_operator", "select trunkline.set_schedule('s', '@daily', 'report')"),
    ("trunkline_operator", "select trunkline.health()"),
    ("trunkline_operator", "select * from trunkline.queues"),
    ("trunkline_operator", "select * from trunkline.stale_monitor"),
)  # fmt: skip


@pytest.fixture(scope="module")
def trapped(server: Server, template: str) -> Iterator[Database]:
    """A database where any member may make temporary objects and use a schema full of traps."""
    with databases.fresh(server, template) as database:
        looker = database.superuser()
        looker.execute("create schema hostile; grant usage on schema hostile to public")
        looker.execute(TRAPS.format(schema="hostile").encode())
        looker.execute("grant execute on all functions in schema hostile to public")
        looker.execute(f"grant temporary on database {database.name} to public".encode())
        yield database


def hostile(database: Database, role: str) -> psycopg.Connection:
    """A session of the role that has every trap in front of the system's own names."""
    connection = database.connect(role)
    for table in TEMPORARY:
        connection.execute(f"create temporary table {table} (task text, tenant text)".encode())
    connection.execute(TRAPS.format(schema="pg_temp").encode())
    connection.execute("set search_path = pg_temp, hostile, pg_catalog")
    return connection


@pytest.mark.parametrize(("role", "statement"), LIFE, ids=[case[1][7:50] for case in LIFE])
def test_functions_and_views_do_not_fall_for_it(
    trapped: Database, role: str, statement: str
) -> None:
    trapped.connect("trunkline_producer").execute("select trunkline.register_task('report')")
    connection = hostile(trapped, role)
    cursor = connection.execute(statement.encode())
    assert cursor.description
    # Nothing was written to what lay in the way.
    connection.execute("set search_path = pg_catalog")
    for table in TEMPORARY:
        assert connection.execute(f"select from pg_temp.{table}".encode()).fetchall() == []
    connection.close()


def test_the_traps_would_spring(trapped: Database) -> None:
    """A function without its pinned path falls into them, so the tests above prove something."""
    looker = trapped.superuser()
    connection = hostile(trapped, "trunkline_operator")
    setter = "trunkline.set_setting(text, text)"
    looker.execute(f"alter function {setter} reset search_path".encode())
    try:
        with pytest.raises(psycopg.errors.RaiseException, match="trapped by ="):
            connection.execute("select trunkline.set_setting('crash_limit', '4')")
    finally:
        looker.execute(f"alter function {setter} set search_path = pg_catalog, pg_temp".encode())
    connection.execute("select trunkline.set_setting('crash_limit', '4')")
    connection.close()
