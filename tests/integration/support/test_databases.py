"""The bench itself: every test has a database of its own, any role, and a clock to move."""

import psycopg
import pytest

from tests.support import databases
from tests.support.databases import Database
from tests.support.servers import Server


def test_the_server_is_the_one_asked_for(server: Server, database: Database) -> None:
    row = database.connect().execute("select current_setting('server_version_num')").fetchone()
    assert row is not None
    assert int(row[0]) // 10000 == server.major


def test_the_installer_is_no_superuser_and_owns_the_database(database: Database) -> None:
    row = (
        database.connect()
        .execute(
            "select r.rolsuper, r.rolcreaterole, d.datdba = r.oid, d.datname "
            "from pg_roles r, pg_database d "
            "where r.rolname = session_user and d.datname = current_database()"
        )
        .fetchone()
    )
    assert row == (False, True, True, database.name)


def test_a_role_is_taken_wholly(database: Database) -> None:
    connection = database.connect("trunkline_worker", autocommit=False)
    row = connection.execute("select session_user, current_user").fetchone()
    assert row == ("trunkline_worker", "trunkline_worker")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute("set role trunkline_owner")


def test_databases_of_one_template_are_separate(server: Server, template: str) -> None:
    with databases.fresh(server, template) as one, databases.fresh(server, template) as other:
        one.superuser().execute("create table public.here ()")
        row = other.superuser().execute("select to_regclass('public.here')").fetchone()
        assert row == (None,)
        gone = other
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(gone.dsn)


def test_time_moves_for_every_session(database: Database) -> None:
    query = "select extract(epoch from trunkline.clock() - clock_timestamp())::int"
    other = database.superuser()
    assert other.execute(query).fetchone() == (0,)
    database.move_time("5 minutes")
    database.move_time("-1 minute")
    assert other.execute(query).fetchone() == (240,)
    assert database.connect().execute(query).fetchone() == (240,)
