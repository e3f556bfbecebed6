"""Every way in which a database can differ from the shipped schema is named."""

from __future__ import annotations

import uuid

import pytest
from psycopg import sql

from tests.migrations.conftest import OwnServer
from tests.support.databases import Database
from trunkline.errors import SchemaMissing
from trunkline.schema import install, upgrade, verify
from trunkline.schema.tenants import grants


def differences(database: Database, change: str) -> list[str]:
    database.superuser().execute(change.encode())
    return [str(difference) for difference in verify(database.dsn)]


def test_fresh_installation_is_equal(database: Database) -> None:
    assert verify(database.dsn) == []


def test_empty_database_is_not_compared(empty: str) -> None:
    with pytest.raises(SchemaMissing):
        verify(empty)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (
            "drop index trunkline_internal.waiting_ready",
            "missing index trunkline_internal.waiting_ready",
        ),
        (
            "alter table trunkline_internal.waiting add column size integer",
            "extra column trunkline_internal.waiting.size",
        ),
        (
            "alter table trunkline_internal.waiting alter column task drop not null",
            "changed column trunkline_internal.waiting.task: not null is not set, should be set",
        ),
        (
            "alter table trunkline_internal.waiting alter column attempt set default 7",
            "changed column trunkline_internal.waiting.attempt: default is '7', should be '0'",
        ),
        (
            "alter table trunkline_internal.waiting drop constraint waiting_is_sound",
            "missing constraint trunkline_internal.waiting.waiting_is_sound",
        ),
        (
            "alter table trunkline_internal.waiting disable row level security",
            "changed table trunkline_internal.waiting: row security is not set, should be set",
        ),
        (
            "alter table trunkline_internal.waiting no force row level security",
            (
                "changed table trunkline_internal.waiting:"
                " forced row security is not set, should be set"
            ),
        ),
        (
            "drop policy owner_rows on trunkline_internal.waiting",
            "missing policy trunkline_internal.waiting.owner_rows",
        ),
        (
            "create policy all_rows on trunkline_internal.waiting using (true)",
            "extra policy trunkline_internal.waiting.all_rows",
        ),
        (
            "revoke execute on function trunkline.schema_version from trunkline_worker",
            "missing grant execute on function trunkline.schema_version to trunkline_worker",
        ),
        (
            "grant execute on function trunkline.schema_version to public",
            "extra grant execute on function trunkline.schema_version to public",
        ),
        (
            "grant select on trunkline_internal.waiting to trunkline_reader",
            "extra grant select on table trunkline_internal.waiting to trunkline_reader",
        ),
        (
            "grant usage on schema trunkline_internal to trunkline_reader",
            "extra grant usage on schema trunkline_internal to trunkline_reader",
        ),
        (
            "alter function trunkline.schema_version() security invoker",
            (
                "changed function trunkline.schema_version:"
                " security definer is not set, should be set"
            ),
        ),
        (
            "alter function trunkline.schema_version() reset search_path",
            (
                "changed function trunkline.schema_version: settings is not set,"
                " should be ['search_path=pg_catalog, pg_temp']"
            ),
        ),
        (
            "alter function trunkline.schema_version() volatile",
            (
                "changed function trunkline.schema_version:"
                " volatility is 'volatile', should be 'stable'"
            ),
        ),
        (
            (
                "create or replace function trunkline.clock() returns timestamptz"
                " language sql volatile as $$ select pg_catalog.now() $$"
            ),
            "changed function trunkline.clock: body differs",
        ),
        (
            (
                "create function trunkline.more() returns integer language sql as 'select 1';"
                "revoke all on function trunkline.more() from public"
            ),
            "extra function trunkline.more",
        ),
        (
            "comment on table trunkline_internal.waiting is 'other'",
            (
                "changed table trunkline_internal.waiting: comment is 'other', should be"
                " 'Jobs that are not running yet: ready, scheduled or blocked.'"
            ),
        ),
        (
            "alter sequence trunkline_internal.job_sequence cache 50",
            "changed sequence trunkline_internal.job_sequence: cache is 50, should be 1",
        ),
        (
            "create table trunkline_internal.more (thing text not null)",
            "extra table trunkline_internal.more",
        ),
        (
            "create rule nothing as on delete to trunkline_internal.waiting do instead nothing",
            "extra rule trunkline_internal.waiting.nothing",
        ),
        (
            "alter view trunkline.jobs reset (security_barrier)",
            "changed view trunkline.jobs: options is not set, should be ['security_barrier=true']",
        ),
        (
            "alter type trunkline.changed_job add attribute size integer",
            "extra column trunkline.changed_job.size",
        ),
        (
            "delete from trunkline_internal.schema_migrations where version = 1",
            "missing migration 0001_baseline",
        ),
        (
            "alter default privileges for role trunkline_owner grant all on routines to public",
            "missing default privileges on functions in every schema",
        ),
    ],
)
def test_difference_is_named(database: Database, change: str, named: str) -> None:
    assert named in differences(database, change)


def test_nothing_else_is_named(database: Database) -> None:
    found = differences(database, "drop index trunkline_internal.waiting_ready")
    assert found == ["missing index trunkline_internal.waiting_ready"]


def test_missing_table_does_not_list_its_parts(database: Database) -> None:
    found = differences(database, "drop table trunkline_internal.idempotency_keys")
    assert "missing table trunkline_internal.idempotency_keys" in found
    assert not [one for one in found if "trunkline_internal.idempotency_keys." in one]


def test_an_overload_is_distinguished_from_the_original(database: Database) -> None:
    found = differences(
        database,
        "create function trunkline.clock(p_zone text) returns timestamptz language sql"
        " as 'select now()'; revoke all on function trunkline.clock(text) from public",
    )
    assert found == ["extra function trunkline.clock(text)"]


@pytest.mark.parametrize(
    ("before", "after"), [("'operator'", "'somebody'"), ("default_value", "minimum")]
)
def test_changed_view_is_named(database: Database, before: str, after: str) -> None:
    connection = database.superuser()
    row = connection.execute("select pg_get_viewdef('trunkline.settings'::regclass)").fetchone()
    assert row is not None
    # The first one only, which is in an expression: the names of the columns stay.
    other = row[0].replace(before, after, 1)
    assert other != row[0]
    found = differences(
        database,
        f"create or replace view trunkline.settings with (security_barrier = true) as {other}",
    )
    assert found == ["changed view trunkline.settings: query differs"]


def test_partitions_are_not_compared_by_name(database: Database) -> None:
    name = "trunkline_internal.finished_of_1999"
    found = differences(
        database,
        f"create table {name} partition of trunkline_internal.finished"
        " for values from ('1999-01-01') to ('1999-01-02');"
        f"alter table {name} owner to trunkline_owner;"
        f"alter table {name} enable row level security, force row level security;"
        f"create policy owner_rows on {name} to trunkline_owner using (true) with check (true)",
    )
    assert found == []


def test_missing_default_partition_is_named(database: Database) -> None:
    found = differences(database, "drop table trunkline_internal.finished_default")
    assert found == ["missing default partition trunkline_internal.finished_default"]


def test_grants_of_tenants_are_no_difference(database: Database) -> None:
    assert differences(database, grants("pg_read_all_settings")) == []


def test_other_grants_to_strangers_are_named(database: Database) -> None:
    found = differences(
        database, "grant execute on function trunkline.claim to pg_read_all_settings"
    )
    assert found == ["extra grant execute on function trunkline.claim to pg_read_all_settings"]


def test_any_role_may_verify(database: Database) -> None:
    connection = database.superuser()
    connection.execute("drop index trunkline_internal.waiting_ready")
    # Roles belong to the server, which other tests use at the same time.
    name = f"stranger_{uuid.uuid4().hex}"
    stranger = sql.Identifier(name)
    connection.execute(sql.SQL("create role {} login").format(stranger))
    try:
        found = verify(database.dsn.replace("trunkline_installer", name))
    finally:
        connection.execute(sql.SQL("drop role {}").format(stranger))
    assert [str(one) for one in found] == ["missing index trunkline_internal.waiting_ready"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("disable row level security", "row security is not set, should be set"),
        ("no force row level security", "forced row security is not set, should be set"),
        ("owner to trunkline_installer", "owner is 'trunkline_installer'"),
    ],
)
def test_a_partition_of_a_day_is_walled_like_its_parent(
    database: Database, change: str, named: str
) -> None:
    connection = database.superuser()
    row = connection.execute(
        "select min(inhrelid::regclass::text) from pg_inherits"
        " where inhparent = 'trunkline_internal.finished'::regclass"
    ).fetchone()
    assert row is not None
    found = differences(database, f"alter table {row[0]} {change}")
    assert len(found) == 1
    assert found[0].startswith(f"changed partition {row[0]}: ")
    assert named in found[0]


@pytest.mark.parametrize(
    "change", ["drop policy owner_rows on {}", "create policy all_rows on {} using (true)"]
)
def test_a_partition_of_a_day_has_the_policy_of_its_parent(database: Database, change: str) -> None:
    row = (
        database.superuser()
        .execute(
            "select min(inhrelid::regclass::text) from pg_inherits as i"
            " join pg_class as c on c.oid = i.inhrelid"
            " where inhparent = 'trunkline_internal.finished'::regclass"
            " and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'"
        )
        .fetchone()
    )
    assert row is not None
    [found] = differences(database, change.format(row[0]))
    assert found.startswith(f"changed partition {row[0]}: policies are ")


def test_new_partitions_are_walled_too(database: Database) -> None:
    database.move_time("40 days")
    database.connect("trunkline_worker").execute("select trunkline.maintain_partitions()")
    # The tests' own clock is a difference; nothing else is.
    assert {difference.name for difference in verify(database.dsn)} <= {"trunkline.clock"}


def test_a_role_of_tenants_must_not_act_for_all(database: Database) -> None:
    role = f"tenants_{uuid.uuid4().hex}"
    connection = database.superuser()
    name = sql.Identifier(role)
    connection.execute(sql.SQL("create role {}").format(name))
    try:
        connection.execute(grants(role).encode())
        assert verify(database.dsn) == []
        connection.execute(sql.SQL("grant trunkline_operator to {}").format(name))
        assert [str(difference) for difference in verify(database.dsn)] == [
            f"extra membership {role} in trunkline_operator: this tenant role acts for all tenants"
        ]
    finally:
        connection.execute(sql.SQL("drop owned by {}").format(name))
        connection.execute(sql.SQL("drop role {}").format(name))


def test_only_logins_that_installed_belong_to_the_owner(own_server: OwnServer) -> None:
    own_server.create("one")
    dsn = own_server.dsn("one")
    install(dsn)
    assert verify(dsn) == []
    with own_server.superuser("one") as connection:
        connection.execute("create role friends")
        connection.execute("create role stranger login in role friends")
        connection.execute("grant trunkline_owner to friends")
        named = [str(difference) for difference in verify(dsn)]
        assert len(named) == 1
        assert named[0].startswith("extra membership stranger in trunkline_owner: ")
        # An installer is one that installs or upgrades.
        connection.execute("grant create on database one to stranger")
        connection.execute("alter role stranger createrole")
    upgrade(own_server.dsn("one", user="stranger"))
    assert verify(dsn) == []
