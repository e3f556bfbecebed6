"""On a platform that gives new objects to everybody, nobody gets more than the mapping says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.migrations.conftest import OwnServer
from tests.migrations.test_script import psql
from tests.support.servers import Server
from trunkline.schema import install, script, tenants, uninstall, verify

PLATFORM = """
create role anon nologin noinherit;
create role authenticated nologin noinherit;
create role service_role nologin noinherit bypassrls;
create role authenticator login noinherit;
grant anon, authenticated, service_role to authenticator;
"""
# The worst case: not only what the installer makes is given away, also what our owner makes.
GENEROUS = """
alter default privileges for role {role}
  grant all on {kind} to anon, authenticated, service_role;
"""

CALLABLE = """
select p.proname from pg_proc as p
where p.pronamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
  and has_function_privilege(%s, p.oid, 'execute')
"""
READABLE = """
select c.relname from pg_class as c
where c.relnamespace in ('trunkline'::regnamespace, 'trunkline_internal'::regnamespace)
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and has_table_privilege(%s, c.oid, 'select, insert, update, delete, truncate')
"""
USABLE = """
select s.name from unnest(array['trunkline', 'trunkline_internal']) as s (name)
where has_schema_privilege(%s, s.name, 'usage, create')
"""
SEQUENCES = """
select s.seqrelid::regclass::text from pg_sequence as s
where has_sequence_privilege(%s, s.seqrelid, 'usage, select, update')
"""


@pytest.fixture
def platform(server: Server, own_server: OwnServer, tmp_path: Path) -> Iterator[psycopg.Connection]:
    """A database of such a platform after the printed script has run there."""
    own_server.create("elsewhere", "project")
    # Makes the roles, so that defaults for objects of the owner can be set up beforehand.
    install(own_server.dsn("elsewhere"))
    with own_server.superuser("project") as connection:
        connection.execute(PLATFORM)
        for role in ("trunkline_owner", "trunkline_installer"):
            for kind in ("tables", "sequences", "functions", "schemas"):
                connection.execute(GENEROUS.format(role=role, kind=kind).encode())
        done = psql(server, own_server.dsn("project"), script(supabase=True), tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        yield connection


def held(connection: psycopg.Connection, query: str, role: str) -> set[str]:
    return {name for (name,) in connection.execute(query.encode(), (role,))}


def test_anon_has_nothing(platform: psycopg.Connection) -> None:
    for query in (CALLABLE, READABLE, USABLE, SEQUENCES):
        assert held(platform, query, "anon") == set()
    platform.execute("set role anon")
    for statement in (b"select trunkline.clock()", b"select from trunkline.jobs"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            platform.execute(statement)


def test_authenticated_has_the_list_of_tenants(platform: psycopg.Connection) -> None:
    assert held(platform, CALLABLE, "authenticated") == set(tenants.FUNCTIONS)
    assert held(platform, READABLE, "authenticated") == set(tenants.VIEWS)
    assert held(platform, USABLE, "authenticated") == {tenants.SCHEMA}
    assert held(platform, SEQUENCES, "authenticated") == set()
    platform.execute("set role authenticated")
    assert platform.execute("select count(*) from trunkline.jobs").fetchone() == (0,)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        platform.execute("select trunkline.claim('w')")


def test_service_role_produces_and_works_but_does_not_operate(
    platform: psycopg.Connection,
) -> None:
    # The role does not inherit, so what it may do is what the roles it can take may do.
    assert held(platform, CALLABLE, "service_role") == set()
    rows = platform.execute(
        "select g.rolname from pg_auth_members as m join pg_roles as g on g.oid = m.roleid"
        " where m.member = 'service_role'::regrole"
    )
    assert {name for (name,) in rows} == {"trunkline_producer", "trunkline_worker"}
    reachable = held(platform, CALLABLE, "trunkline_producer") | held(
        platform, CALLABLE, "trunkline_worker"
    )
    assert {"enqueue", "claim"} <= reachable
    for operation in ("set_setting", "pause_queue", "discard"):
        assert operation in held(platform, CALLABLE, "trunkline_operator")
        assert operation not in reachable


def test_new_objects_of_the_owner_are_not_given_away(platform: psycopg.Connection) -> None:
    platform.execute("set role trunkline_owner")
    platform.execute("create function trunkline.later() returns integer language sql as 'select 1'")
    platform.execute("create table trunkline_internal.later ()")
    platform.execute("reset role")
    for role in ("anon", "authenticated", "service_role"):
        assert "later" not in held(platform, CALLABLE, role) | held(platform, READABLE, role)


def test_mapped_database_is_equal_to_the_shipped_schema(
    platform: psycopg.Connection, own_server: OwnServer
) -> None:
    assert verify(own_server.dsn("project")) == []


def test_platform_roles_survive_an_uninstallation(
    platform: psycopg.Connection, own_server: OwnServer
) -> None:
    for name in ("elsewhere", "project"):
        uninstall(own_server.dsn(name))
    rows = platform.execute("select count(*) from pg_roles where rolname = 'service_role'")
    assert rows.fetchone() == (1,)
    assert own_server.roles() == set()


def test_database_without_the_platform_is_refused(
    server: Server, own_server: OwnServer, tmp_path: Path
) -> None:
    own_server.create("plain")
    done = psql(server, own_server.dsn("plain"), script(supabase=True), tmp_path)
    assert done.returncode == 3
    assert "roles of the platform are missing" in done.stderr
    assert own_server.roles() == set()
