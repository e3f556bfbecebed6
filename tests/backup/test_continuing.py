"""A restored database goes on as if nothing had happened (nothing lost, limits exact)."""

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.backup.scene import account, fill, go_on, run, server
from tests.support import servers
from tests.support.databases import Database
from tests.support.servers import DEBIAN_15

# A schedule runs once a minute, and servers are started on the way.
pytestmark = pytest.mark.timeout(300)


@contextmanager
def login(superuser_dsn: str) -> Iterator[str]:
    """A login of an application, with a setting; the shared servers must not keep it."""
    name = f"app_{uuid.uuid4().hex[:12]}"
    role = sql.Identifier(name)
    with psycopg.connect(superuser_dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create role {} login password 'open sesame'").format(role))
        connection.execute(sql.SQL("grant trunkline_producer to {}").format(role))
        connection.execute(sql.SQL("alter role {} set work_mem = '7MB'").format(role))
        try:
            yield name
        finally:
            connection.execute(sql.SQL("drop owned by {}").format(role))
            connection.execute(sql.SQL("drop role {}").format(role))


def test_a_backup_of_a_given_server_goes_on_in_an_embedded_one(
    database: Database, homes: Path, tmp_path: Path
) -> None:
    # From PostgreSQL 15 to 18, too. The installer is no superuser and bypasses no policy.
    file, home = tmp_path / "jobs.backup", homes / "new"
    with login(database.superuser_dsn) as name:
        run(home, "profile", "install", "executor", dsn=database.dsn)
        fill(database.dsn)
        with database.connect() as connection:
            connection.execute(
                sql.SQL("grant usage on schema shop to {}").format(sql.Identifier(name))
            )
            connection.execute(
                sql.SQL("alter database {} set statement_timeout = '77s'").format(
                    sql.Identifier(database.name)
                )
            )
        before = account(database.dsn)
        saved = run(home, "db", "backup", file, dsn=database.dsn)
    assert {"ready", "scheduled", "running", "completed", "dead"} <= before["jobs"].keys()
    assert b"open sesame" not in file.read_bytes()
    with server(home) as target:
        # A clock of the tests' own belongs to their superuser; it is there on every server.
        restored = run(home, "db", "restore", file)
        assert rows(restored) == rows(saved)
        assert f"Role {name} has no login and no password yet" in restored
        assert account(target.dsn) == before
        with psycopg.connect(target.dsn) as connection:
            found = connection.execute(
                "select r.rolcanlogin, pg_has_role(r.oid, 'trunkline_producer', 'usage'),"
                " has_schema_privilege(r.oid, 'shop', 'usage'), r.rolconfig,"
                " current_setting('statement_timeout')"
                " from pg_roles as r where r.rolname = %s",
                (name,),
            ).fetchone()
        assert found == (False, True, True, ["work_mem=7MB"], "77s")
        assert "is equal" in run(home, "schema", "verify")
        run(home, "profile", "status", "executor")
        go_on(target.dsn, before, tmp_path / "worker.log")
        run(home, "schema", "verify")


@pytest.mark.parametrize("major", servers.majors())
def test_a_backup_of_an_embedded_server_is_restored_by_an_ordinary_role(
    homes: Path, tmp_path: Path, major: int
) -> None:
    # The owner of the target database may create roles, and is no superuser.
    file, bindir = tmp_path / "jobs.backup", DEBIAN_15 if major == 15 else None
    with server(homes / "old", bindir) as source:
        run(homes / "old", "profile", "install", "clinical")
        fill(source.dsn)
        before = account(source.dsn)
        saved = run(homes / "old", "db", "backup", file)
    with server(homes / "new", bindir) as target:
        restored = run(homes / "none", "db", "restore", file, dsn=target.dsn)
        assert rows(restored) == rows(saved)
        assert account(target.dsn) == before
        go_on(target.dsn, before, tmp_path / "worker.log")
        assert "is equal" in run(homes / "none", "schema", "verify", dsn=target.dsn)


def test_a_plain_dump_counts_right_from_the_first_worker_on(homes: Path, tmp_path: Path) -> None:
    # Nobody calls after_restore: the worker that registers first translates what limits need.
    file = tmp_path / "jobs.dump"
    with server(homes / "old") as source:
        run(homes / "old", "schema", "install")
        fill(source.dsn)
        before = account(source.dsn)
        pg_dump = source.bindir / "pg_dump"
        options = ["--format=custom", "--enable-row-security", f"--file={file}"]
        subprocess.run([pg_dump, *options, source.dsn], check=True)
    with server(homes / "new") as target:
        with psycopg.connect(target.superuser_dsn, autocommit=True) as connection:
            for name in ("owner", "producer", "worker", "operator", "reader"):
                connection.execute(f"create role trunkline_{name}".encode())
            connection.execute("grant trunkline_owner to trunkline_installer")
        pg_restore = target.bindir / "pg_restore"
        options = ["--exit-on-error", "--single-transaction", f"--dbname={target.superuser_dsn}"]
        subprocess.run([pg_restore, *options, file], check=True)
        go_on(target.dsn, before, tmp_path / "worker.log", worker_first=True)
        assert "is equal" in run(homes / "new", "schema", "verify")


def rows(output: str) -> list[list[str]]:
    """The table of rows in what a command printed."""
    parts = [line.split() for line in output.splitlines()]
    return [part for part in parts if len(part) == 2 and part[1].replace(",", "").isdigit()]
