"""Every refusal of the register is brought about by a real call, and leaves nothing behind."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.integration.bad_input.cases import CALLS
from tests.integration.bad_input.conftest import World
from tests.support import older
from tools.generate_docs import refusals
from trunkline import schema, sql
from trunkline.errors import SchemaNewerThanClient, from_sqlstate
from trunkline.schema.contract import SchemaVersion, judge

REGISTER = {name: (code, message, hint) for code, name, message, hint in refusals()}
FLAT = [(name, role, call) for name, calls in CALLS.items() for role, call in calls]


@contextmanager
def refused(name: str, *, constant_hint: bool = True) -> Iterator[None]:
    """Expect the refusal with all of its parts."""
    code, message, hint = REGISTER[name]
    with pytest.raises(psycopg.Error) as raised:
        yield
    error = raised.value
    assert (error.sqlstate, error.diag.message_primary) == (code, message)
    detail = json.loads(error.diag.message_detail or "")
    assert detail["code"] == name
    assert error.diag.message_hint
    if constant_hint:
        assert error.diag.message_hint == hint
    translated = from_sqlstate(
        error.sqlstate, message, error.diag.message_detail, error.diag.message_hint
    )
    assert translated is not None
    assert (translated.code, translated.detail) == (name, detail)


@pytest.mark.parametrize(
    ("name", "role", "call"), FLAT, ids=[f"{name}-{call[:60]}" for name, _, call in FLAT]
)
def test_bad_call_is_refused_and_changes_nothing(
    world: World, name: str, role: str, call: str
) -> None:
    connection = world.database.connect(role)
    before = world.contents()
    with refused(name):
        connection.execute(f"select * from {world.fill(call)}".encode())
    assert world.contents() == before
    connection.close()


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("trunkline_worker", "trunkline.claim(p_worker => 'w')"),
        ("trunkline_worker", "trunkline.complete('w', array[<running>], '{1}')"),
        ("trunkline_worker", "trunkline.fail('w', array[<running>], '{1}')"),
        ("trunkline_worker", "trunkline.heartbeat('w', array[<running>], '{1}')"),
        ("trunkline_worker", "trunkline.promote()"),
        ("trunkline_worker", "trunkline.reclaim()"),
        ("trunkline_worker", "trunkline.run_schedules()"),
        ("trunkline_worker", "trunkline.maintain_partitions()"),
        ("trunkline_worker", "trunkline.acquire('api')"),
        ("trunkline_worker", "trunkline.observe_limit('api', '{\"retry_after\": 1}')"),
        ("trunkline_operator", "trunkline.cancel(<ready>)"),
        ("trunkline_operator", "trunkline.retry(<dead>)"),
        ("trunkline_operator", "trunkline.discard(<dead>)"),
        ("trunkline_operator", "trunkline.acknowledge(<dead>)"),
        ("trunkline_operator", "trunkline.reprioritise(<ready>, 3)"),
    ],
)
def test_held_snapshot_is_refused(world: World, level: str, role: str, call: str) -> None:
    connection = world.database.connect(role)
    before = world.contents()
    with refused("isolation_level"), connection.transaction():
        connection.execute(f"set transaction isolation level {level}".encode())
        connection.execute(f"select * from {world.fill(call)}".encode())
    assert world.contents() == before
    connection.close()


def test_enqueue_does_not_mind_a_held_snapshot(world: World) -> None:
    connection = world.database.connect("trunkline_producer")
    connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
    with connection.transaction(force_rollback=True):
        row = connection.execute(
            "select created from trunkline.enqueue(p_task => 'known')"
        ).fetchone()
    assert row == (True,)
    connection.close()


@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("trunkline_producer", "trunkline.enqueue(p_task => 'known', p_tenant => 'b')"),
        (
            "trunkline_producer",
            """trunkline.enqueue_many(
              p_jobs => '[{"task": "known"}, {"task": "known", "tenant": "b"}]'
            )""",
        ),
        (
            "trunkline_operator",
            "trunkline.set_schedule('s', '@daily', 'known', p_tenant => 'b')",
        ),
    ],
)
def test_another_tenant_is_denied(world: World, role: str, call: str) -> None:
    connection = world.database.connect(role)
    connection.execute("set trunkline.tenant = 'a'")
    before = world.contents()
    with refused("tenant_denied"):
        connection.execute(f"select * from {call}".encode())
    assert world.contents() == before
    connection.close()


@pytest.mark.parametrize(
    ("role", "call"),
    [
        ("trunkline_producer", "trunkline.register_task('known', p_audit => true)"),
        ("trunkline_worker", """trunkline.register_tasks('[{"task": "brand new"}]')"""),
        ("trunkline_operator", "trunkline.set_setting('claims_enabled', 'false')"),
    ],
)
def test_what_concerns_all_tenants_is_refused_to_one(world: World, role: str, call: str) -> None:
    connection = world.database.connect(role)
    connection.execute("set trunkline.tenant = 'a'")
    before = world.contents()
    with refused("needs_all_tenants"):
        connection.execute(f"select * from {call}".encode())
    assert world.contents() == before
    connection.close()


def block(script: str, tag: str) -> str:
    """One DO block of a script, by the tag of its quotes."""
    found = re.search(rf"do \${tag}\$.*?\${tag}\$;", script, re.DOTALL)
    assert found is not None
    return found[0]


def test_old_server_is_refused(world: World) -> None:
    # No server older than 15 runs here: the oldest version is moved instead, the block is the same.
    guard = block(sql.roles_sql(), "server")
    assert "< 150000" in guard
    with refused("server_too_old"):
        world.looker.execute(guard.replace("< 150000", "< 990000").encode())
    world.looker.execute(guard.encode())


def test_newer_schema_is_refused_by_the_client() -> None:
    code, _, hint = REGISTER["schema_newer_than_client"]
    with pytest.raises(SchemaNewerThanClient) as raised:
        judge(SchemaVersion(version=9, contract=9, oldest_contract=9), contract=1)
    assert (raised.value.sqlstate, raised.value.code) == (code, "schema_newer_than_client")
    assert raised.value.hint == hint


INSTALLATION = {
    "installer_lacks_right": ("set local role trunkline_reader", sql.roles_sql()),
    "unsafe_role": ("alter role trunkline_reader login", sql.roles_sql()),
    "foreign_schema": ("alter schema trunkline owner to current_user", sql.roles_sql()),
    "platform_roles_missing": ("select", block(sql.supabase_roles_sql(), "platform")),
    "schema_predates_baseline": (
        older.CONTRACT_SQL,
        block(schema.script(from_version=1), "newer"),
    ),
    "schema_version_mismatch": (
        older.NO_MIGRATIONS_SQL,
        block(schema.script(from_version=1), "guard"),
    ),
}


@pytest.mark.parametrize("name", INSTALLATION)
def test_installation_is_refused(world: World, name: str) -> None:
    prepare, script = INSTALLATION[name]
    connection = world.database.superuser(autocommit=False)
    connection.execute(prepare.encode())
    # Their hints name the command that helps.
    with refused(name, constant_hint=False):
        connection.execute(script.encode())
    assert connection.info.transaction_status is psycopg.pq.TransactionStatus.INERROR
    connection.rollback()
    connection.close()


def test_a_strict_completion_is_refused_once_the_worker_has_received_a_cancellation(
    world: World,
) -> None:
    connection = world.database.superuser(autocommit=False)
    connection.execute(world.fill("select trunkline.cancel(<running>)").encode())
    told = world.fill("select trunkline.heartbeat('w', array[<running>], '{1}')")
    connection.execute(told.encode())
    call = world.fill("select trunkline.complete('w', array[<running>], '{1}', p_strict => true)")
    with refused("attempt_cancelled"):
        connection.execute(call.encode())
    connection.rollback()
    connection.close()


def test_every_refusal_of_the_register_is_shown_here() -> None:
    elsewhere = {
        # Python raises it when it opens a file: tests/artifacts/test_uploads.py.
        "artifact_gone",
        "attempt_cancelled",
        "isolation_level",
        # tests/worker/test_gather_jobs.py: it takes eleven jobs.
        "jobs_too_deep",
        "needs_all_tenants",
        "tenant_denied",
        "server_too_old",
        "schema_newer_than_client",
        # tests/workflows/test_retention.py: its job is discarded before.
        "workflow_job_gone",
    }
    assert set(CALLS) | elsewhere | set(INSTALLATION) == set(REGISTER)


def test_a_refusal_can_be_seen_to_change_something(world: World) -> None:
    """The digest notices a change, or the tests above would prove nothing."""
    before = world.contents()
    connection = world.database.connect("trunkline_producer")
    row: tuple[Any, ...] | None = connection.execute(
        "select job_id from trunkline.enqueue(p_task => 'known', p_queue => 'z')"
    ).fetchone()
    assert row is not None
    changed = {table for table, digest in world.contents().items() if digest != before[table]}
    assert changed == {"waiting", "lanes"}
    connection.close()
