"""Should a table ever be granted to somebody, row-level security shows him his tenant's rows."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.integration.security.conftest import Connection, Tenants

WITH_TENANT = (
    "waiting", "running", "finished", "dead", "events", "unique_keys", "schedules", "grants",
    "usage", "workflows", "artifacts", "staged_artifacts", "storage_quotas", "storage_usage",
)  # fmt: skip


@pytest.fixture(scope="module")
def granted(tenants: Tenants) -> Iterator[Connection]:
    """A role that was given all tables by mistake."""
    name = f"granted_{tenants.role}"
    for statement in (
        f"create role {name} login",
        f"grant usage on schema trunkline_internal to {name}",
        f"grant all on all tables in schema trunkline_internal to {name}",
    ):
        tenants.looker.execute(statement.encode())
    connection = tenants.database.connect(name)
    yield connection
    connection.close()
    tenants.looker.execute(f"drop owned by {name}; drop role {name}".encode())


@pytest.mark.parametrize("table", WITH_TENANT)
def test_only_rows_of_the_own_tenant_are_seen(
    tenants: Tenants, granted: Connection, table: str
) -> None:
    query = f"select distinct tenant from trunkline_internal.{table}".encode()
    for tenant, seen in (("a", [("a",)]), ("b", [("b",)]), ("", []), ("nobody", [])):
        granted.execute("select set_config('trunkline.tenant', %s, false)", (tenant,))
        assert granted.execute(query).fetchall() == seen


def test_nothing_is_seen_without_a_tenant_or_of_tables_without_one(
    tenants: Tenants, granted: Connection
) -> None:
    rows = tenants.looker.execute(
        "select c.oid::regclass::text, c.relispartition from pg_class as c"
        " where c.relnamespace = 'trunkline_internal'::regnamespace and c.relkind in ('r', 'p')"
    ).fetchall()
    granted.execute("set trunkline.tenant = 'a'")
    seen = set()
    for table, _ in rows:
        if granted.execute(f"select from {table} limit 1".encode()).fetchall():
            seen.add(table.removeprefix("trunkline_internal."))
    # Partitions on their own show nothing either.
    assert seen == {*WITH_TENANT, "idempotency_keys", "operator_log", "workers"}
    granted.execute("reset trunkline.tenant")
    for table, _ in rows:
        assert granted.execute(f"select from {table} limit 1".encode()).fetchall() == []


def test_nothing_can_be_written(tenants: Tenants, granted: Connection) -> None:
    before = tenants.rows("a")
    granted.execute("set trunkline.tenant = 'a'")
    assert granted.execute("delete from trunkline_internal.waiting").rowcount == 0
    assert granted.execute("update trunkline_internal.dead set reason = 'x'").rowcount == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="row-level security"):
        granted.execute(
            "insert into trunkline_internal.unique_keys (profile, tenant, unique_key, job_id)"
            " values ('x', 'a', 'x', gen_random_uuid())"
        )
    assert tenants.rows("a") == before


def test_the_wall_is_what_holds(tenants: Tenants, granted: Connection) -> None:
    """Without it the grant would show everything, so the tests above prove something."""
    granted.execute("set trunkline.tenant = 'a'")
    tenants.looker.execute("alter table trunkline_internal.dead disable row level security")
    try:
        row = granted.execute("select count(distinct tenant) from trunkline_internal.dead")
        assert row.fetchone() == (2,)
    finally:
        tenants.looker.execute("alter table trunkline_internal.dead enable row level security")


def test_a_condition_of_the_caller_is_not_asked_about_hidden_rows(tenants: Tenants) -> None:
    """The views are barriers: a cheap function that tells what it is given hears nothing."""
    heard: list[str] = []
    connection = tenants.bound()
    connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    tenants.looker.execute(
        f"grant temporary on database {tenants.database.name} to {tenants.role}".encode()
    )
    connection.execute(
        """
        create function pg_temp.tell(p_text text) returns boolean
        language plpgsql cost 0.0001 as $$ begin raise notice '%', p_text; return true; end $$
        """
    )
    connection.execute("select from trunkline.jobs as j where pg_temp.tell(j.job_id::text)")
    connection.close()
    assert set(heard) == set(tenants.jobs["a"].values())


def test_queueing_works_without_any_right_to_a_table(tenants: Tenants) -> None:
    producer = tenants.database.connect("trunkline_producer")
    with producer.transaction(force_rollback=True):
        row = producer.execute("select created from trunkline.enqueue('report')").fetchone()
        assert row == (True,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        producer.execute("insert into trunkline_internal.waiting default values")
    producer.close()
