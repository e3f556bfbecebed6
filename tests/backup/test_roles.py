"""Roles that the target server has already: they never get more than they had at the source."""

from pathlib import Path

import psycopg

from tests.backup.scene import run, server
from tests.support.processes import trunkline

_SOURCE = """
create role pa login;
create role pb login;
create role pc login;
create role pd login;
create role team;
grant trunkline_producer to pa, pb, pd, team;
grant team to pc;
alter role pa set trunkline.tenant = 'A';
alter role pb set trunkline.tenant = 'B';
alter role pc set trunkline.tenant = 'C';
alter role pd in database trunkline set trunkline.tenant = 'D';
"""
# As on a server where the same names were given for something else; only pb is as it was.
_TARGET = """
create role pa login;
create role pb login;
create role pc login;
create role pd login;
create role team;
grant team to pc;
alter role pa set search_path = shop;
alter role pb set trunkline.tenant = 'B';
"""


def producers(dsn: str) -> dict[str, tuple[bool, list[str] | None]]:
    with psycopg.connect(dsn) as connection:
        rows = connection.execute(
            "select rolname, pg_has_role(oid, 'trunkline_producer', 'usage'), rolconfig"
            " from pg_roles where rolname in ('pa', 'pb', 'pc', 'pd', 'team')"
        ).fetchall()
    return {name: (member, config) for name, member, config in rows}


def execute(dsn: str, text: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(text.encode())


def save(home: Path, file: Path) -> None:
    with server(home) as source:
        run(home, "schema", "install")
        execute(source.superuser_dsn, _SOURCE)
        run(home, "db", "backup", file)


def test_an_existing_role_is_not_freed_from_its_tenant(homes: Path, tmp_path: Path) -> None:
    file, home = tmp_path / "jobs.backup", homes / "new"
    save(homes / "old", file)
    with server(home) as target:
        execute(target.superuser_dsn, _TARGET)
        done = trunkline(home, "db", "restore", str(file))
        assert done.returncode == 0, done.stderr
        assert producers(target.dsn) == {
            "pa": (False, ["search_path=shop"]),
            "pb": (True, ["trunkline.tenant=B"]),
            "pc": (False, None),
            # The restore sets what belongs to the database.
            "pd": (True, None),
            "team": (False, None),
        }
        notes = [line for line in done.stderr.splitlines() if line.startswith("Not done: ")]
        assert len(notes) == 2
        for member, confined, tenant in (("pa", "pa", "A"), ("team", "pc", "C")):
            (note,) = [one for one in notes if f'"trunkline_producer" to "{member}"' in one]
            by_hand = f"""alter role "{confined}" set "trunkline"."tenant" = '{tenant}'"""
            assert note.endswith(by_hand)


def test_a_setting_that_cannot_be_made_keeps_the_role_out(homes: Path, tmp_path: Path) -> None:
    # An ordinary role may not make settings of this name, also for roles that it creates.
    file = tmp_path / "jobs.backup"
    save(homes / "old", file)
    with server(homes / "new") as target:
        done = trunkline(
            homes / "none", "db", "restore", str(file), environment={"TRUNKLINE_DSN": target.dsn}
        )
        assert done.returncode == 0, done.stderr
        assert not any(
            member for name, (member, _) in producers(target.dsn).items() if name != "team"
        )
        assert 'grant "trunkline_producer" to "pa"' in done.stderr


def test_a_restore_that_fails_changes_no_existing_role(homes: Path, tmp_path: Path) -> None:
    file, folder = tmp_path / "jobs.backup", tmp_path / "bin"
    save(homes / "old", file)
    with server(homes / "new") as target:
        folder.mkdir()
        program = folder / "pg_restore"
        program.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] && exec {target.bindir / "pg_restore"} "$@"\nexit 1\n'
        )
        program.chmod(0o755)
        # By the restoring role, which may then grant them.
        execute(target.dsn, "create role trunkline_owner; create role trunkline_producer;")
        execute(target.dsn, "create role pd; create role pb")
        execute(target.superuser_dsn, "alter role pb set trunkline.tenant = 'B'")
        before = memberships(target.dsn)
        done = trunkline(
            homes / "none",
            "db",
            "restore",
            str(file),
            environment={"TRUNKLINE_DSN": target.dsn, "TRUNKLINE_PG_BINDIR": str(folder)},
        )
        assert done.returncode == 1
        assert "Code: backup_failed" in done.stderr
        assert memberships(target.dsn) == before


def memberships(dsn: str) -> list[tuple[str, str, str]]:
    """Every membership with its options, and every role."""
    with psycopg.connect(dsn) as connection:
        return connection.execute(
            "select r.rolname, coalesce(g.rolname, ''),"
            " coalesce((to_jsonb(a) - 'oid')::text, '')"
            " from pg_roles as r left join pg_auth_members as a on a.member = r.oid"
            " left join pg_roles as g on g.oid = a.roleid order by 1, 2, 3"
        ).fetchall()
