"""The installer is no superuser, meets others who install at the same time, and says what it lacks.

Roles belong to the whole server, so every test here has a server for itself.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from psycopg import sql as composer

from tests.migrations.conftest import OwnServer
from tests.migrations.tiny import FOUNDATION, engine
from trunkline import sql
from trunkline.errors import InstallationRefused, SchemaMissing
from trunkline.schema import uninstall
from trunkline.schema.plan import Options
from trunkline.schema.runner import Report, bring_up_to_date

OURS = {
    "trunkline_operator",
    "trunkline_owner",
    "trunkline_producer",
    "trunkline_reader",
    "trunkline_worker",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return engine(tmp_path, {"0001_foundation.sql": FOUNDATION})


def install(dsn: str, root: Path) -> Report:
    return bring_up_to_date(dsn, Options(root=root, lock_timeout=60), from_nothing=True)


def refusal(dsn: str, root: Path) -> InstallationRefused:
    with pytest.raises(InstallationRefused) as refused:
        install(dsn, root)
    return refused.value


def test_roles_can_do_nothing_by_themselves(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    install(own_server.dsn("one"), root)
    with own_server.superuser() as connection:
        rows = connection.execute(
            "select rolname, rolcanlogin or rolsuper or rolbypassrls or rolcreatedb"
            " or rolcreaterole or rolreplication"
            " from pg_roles where rolname = any (%s)",
            (sorted(OURS),),
        )
        assert dict(rows.fetchall()) == dict.fromkeys(OURS, False)


def test_installer_is_not_a_superuser(own_server: OwnServer) -> None:
    with own_server.superuser() as connection:
        row = connection.execute(
            "select rolsuper or rolbypassrls, rolcreaterole from pg_roles"
            " where rolname = 'trunkline_installer'"
        ).fetchone()
    assert row == (False, True)


def test_parallel_installers_of_different_databases(own_server: OwnServer, root: Path) -> None:
    names = [f"db{number}" for number in range(4)]
    own_server.create(*names)
    # Several rounds: the moment when two create the same role is short.
    for _ in range(3):
        ready = Barrier(len(names))

        def together(name: str, ready: Barrier = ready) -> Report:
            ready.wait()
            return install(own_server.dsn(name), root)

        with ThreadPoolExecutor(len(names)) as pool:
            reports = list(pool.map(together, names))
        assert [report.version for report in reports] == [1] * len(names)
        assert own_server.roles() == OURS
        for name in names:
            uninstall(own_server.dsn(name))
        assert own_server.roles() == set()


def test_unsafe_role_is_refused(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    with own_server.superuser() as connection:
        connection.execute("create role trunkline_owner nologin bypassrls")
    refused = refusal(own_server.dsn("one"), root)
    assert (refused.reason, refused.sqlstate) == ("unsafe_role", "TL091")
    assert refused.detail["attributes"] == ["bypassrls"]
    assert "alter role trunkline_owner nobypassrls" in refused.hint


def test_role_of_another_installer_needs_one_grant(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    install(own_server.dsn("one"), root)
    with own_server.superuser() as connection:
        connection.execute("create role second login createrole")
    own_server.create("two", owner="second")
    second = own_server.dsn("two", user="second")
    if own_server.major >= 16:
        refused = refusal(second, root)
        assert (refused.reason, refused.sqlstate) == ("installer_lacks_right", "TL090")
        assert refused.detail["right"] == "membership"
        command = refused.hint.removeprefix("Ask an administrator to run: ")
        assert command == "grant trunkline_owner to second with inherit true, set true;"
        with own_server.superuser() as connection:
            connection.execute(command.encode())
    # Up to PostgreSQL 15 CREATEROLE reaches every role that is no superuser.
    assert install(second, root).version == 1


@pytest.mark.parametrize(
    ("owner", "createrole", "right"), [(True, False, "createrole"), (False, True, "create")]
)
def test_missing_right_is_named_with_its_cure(
    own_server: OwnServer, root: Path, *, owner: bool, createrole: bool, right: str
) -> None:
    with own_server.superuser() as connection:
        option = composer.SQL("createrole" if createrole else "nocreaterole")
        connection.execute(composer.SQL("create role poor login {}").format(option))
    own_server.create("one", owner="poor" if owner else "trunkline_installer")
    refused = refusal(own_server.dsn("one", user="poor"), root)
    assert (refused.reason, refused.detail["right"]) == ("installer_lacks_right", right)
    # The cure in the hint is one that works.
    with own_server.superuser("one") as connection:
        connection.execute(refused.hint.removeprefix("Ask an administrator to run: ").encode())
    assert install(own_server.dsn("one", user="poor"), root).version == 1


def test_installer_need_not_inherit(own_server: OwnServer, root: Path) -> None:
    with own_server.superuser() as connection:
        connection.execute("create role modest login createrole noinherit")
    own_server.create("one", owner="modest")
    dsn = own_server.dsn("one", user="modest")
    assert install(dsn, root).version == 1
    assert install(dsn, root).applied == ()
    assert set(uninstall(dsn).dropped_roles) == OURS


def test_schema_of_somebody_else_is_left_alone(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    with own_server.superuser("one") as connection:
        connection.execute("create schema trunkline; create table trunkline.mine ()")
    refused = refusal(own_server.dsn("one"), root)
    assert (refused.reason, refused.sqlstate) == ("foreign_schema", "TL092")
    assert own_server.roles() == set()


def test_old_server_is_refused_before_anything_else(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    # No such server can be started here, so the oldest version is moved instead.
    pretended = sql.roles_sql(root).replace("< 150000", "< 990000")
    (root / "security" / "roles.sql").write_text(pretended, encoding="utf-8")
    refused = refusal(own_server.dsn("one"), root)
    assert (refused.reason, refused.sqlstate) == ("server_too_old", "TL013")
    assert refused.detail["oldest"] == 15
    assert own_server.roles() == set()


def test_uninstall_leaves_roles_that_another_database_uses(
    own_server: OwnServer, root: Path
) -> None:
    own_server.create("one", "two")
    for name in ("one", "two"):
        install(own_server.dsn(name), root)
    first = uninstall(own_server.dsn("one"))
    assert first.dropped_roles == ()
    assert first.kept_roles == dict.fromkeys(OURS, "used in two")
    assert own_server.roles() == OURS
    last = uninstall(own_server.dsn("two"))
    assert set(last.dropped_roles) == OURS
    assert last.kept_roles == {}
    assert own_server.roles() == set()


def test_uninstall_leaves_a_role_that_has_other_rights(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    install(own_server.dsn("one"), root)
    with psycopg.connect(own_server.dsn("one")) as connection:
        connection.execute("create table public.report ()")
        connection.execute("grant select on public.report to trunkline_reader")
    report = uninstall(own_server.dsn("one"))
    assert set(report.dropped_roles) == OURS - {"trunkline_reader"}
    assert list(report.kept_roles) == ["trunkline_reader"]
    assert "report" in report.kept_roles["trunkline_reader"]


def test_uninstall_can_leave_all_roles(own_server: OwnServer, root: Path) -> None:
    own_server.create("one")
    install(own_server.dsn("one"), root)
    report = uninstall(own_server.dsn("one"), drop_roles=False)
    assert set(report.kept_roles) == OURS
    assert own_server.roles() == OURS
    with psycopg.connect(own_server.dsn("one")) as connection:
        row = connection.execute(
            "select to_regnamespace('trunkline'), to_regnamespace('trunkline_internal'),"
            " (select count(*) from pg_default_acl)"
        ).fetchone()
    assert row == (None, None, 0)


def test_uninstall_of_nothing_is_refused(own_server: OwnServer) -> None:
    own_server.create("one")
    with pytest.raises(SchemaMissing):
        uninstall(own_server.dsn("one"))
