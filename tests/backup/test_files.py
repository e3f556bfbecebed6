"""Files of backups: private, whole, never replaced unasked; and targets that are refused."""

import json
import os
import stat
import tarfile
from pathlib import Path

import psycopg
import pytest

from tests.backup.scene import run, server
from tests.support.databases import Database
from tests.support.internals.tables import table
from tests.support.processes import trunkline
from trunkline.backup import programs
from trunkline.backup.archive import draft
from trunkline.errors import BackupFileExists, BackupProgramsMissing


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "jobs.backup"


def failed(home: Path, *arguments: object, dsn: str = "", code: str, **more: str) -> str:
    done = trunkline(home, *map(str, arguments), environment={"TRUNKLINE_DSN": dsn, **more})
    assert done.returncode == 1, done.stdout
    assert f"Code: {code}" in done.stderr
    return done.stderr


def test_a_backup_is_private_and_lists_what_it_has(
    database: Database, homes: Path, file: Path
) -> None:
    answer = json.loads(run(homes / "none", "db", "backup", file, "--json", dsn=database.dsn))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert answer["rows"][table("waiting")] == 0
    assert answer["server"] == answer["program"] == database.server.major
    with tarfile.open(file) as archive:
        assert archive.getnames() == ["manifest.json", "database.dump", "sha256"]
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_the_embedded_server_is_not_used_where_it_is_refused(
    homes: Path, file: Path, command: str
) -> None:
    home = homes / "home"
    with server(home):
        run(home, "schema", "install")
        if command == "restore":
            assert f"of embedded in {home} saved to {file}" in run(home, "db", "backup", file)
        for arguments, code, more in (
            ([], "dsn_required", {"TRUNKLINE_EMBEDDED": "0"}),
            (["--dsn", ""], "database_unreachable", {}),
        ):
            failed(home, "db", command, *arguments, file, code=code, **more)
        assert file.exists() is (command == "restore")


def test_both_commands_name_their_server(database: Database, homes: Path, file: Path) -> None:
    saved = run(homes / "none", "db", "backup", file, dsn=database.dsn)
    assert f"/{database.name} saved to {file}" in saved
    with server(homes / "new"):
        restored = run(homes / "new", "db", "restore", file)
    assert f"restored from {file} to embedded in {homes / 'new'}" in restored


def test_an_existing_file_is_replaced_only_by_force(
    database: Database, homes: Path, file: Path
) -> None:
    file.write_text("mine")
    failed(homes / "none", "db", "backup", file, dsn=database.dsn, code="backup_file_exists")
    assert file.read_text() == "mine"
    run(homes / "none", "db", "backup", file, "--force", dsn=database.dsn)
    assert tarfile.is_tarfile(file)


def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "jobs.backup"
    with pytest.raises(BackupFileExists), draft(file, force=False):
        file.write_text("mine")
    assert [one.name for one in tmp_path.iterdir()] == ["jobs.backup"]
    assert file.read_text() == "mine"


def test_a_link_is_replaced_and_not_followed(database: Database, homes: Path, file: Path) -> None:
    victim = file.with_name("victim")
    victim.write_text("mine")
    file.symlink_to(victim)
    failed(homes / "none", "db", "backup", file, dsn=database.dsn, code="backup_file_exists")
    run(homes / "none", "db", "backup", file, "--force", dsn=database.dsn)
    assert victim.read_text() == "mine"
    assert not file.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_root_writes_nothing_where_another_user_could_replace_it(
    database: Database, homes: Path, tmp_path: Path
) -> None:
    theirs, shared, below = tmp_path / "theirs", tmp_path / "shared", tmp_path / "theirs" / "below"
    for folder in (theirs, shared, below):
        folder.mkdir()
    os.chown(theirs, 65534, 65534)
    shared.chmod(0o777)
    for folder in (theirs, shared, below):
        file = folder / "jobs.backup"
        error = failed(homes / "none", "db", "backup", file, dsn=database.dsn, code="backup_error")
        assert "another user could replace it" in error
        assert not file.exists()
    # Others may not replace a file of root's there, as in /tmp.
    shared.chmod(0o1777)
    run(homes / "none", "db", "backup", shared / "jobs.backup", dsn=database.dsn)


def test_a_path_that_changes_meanwhile_leads_nowhere_else(tmp_path: Path) -> None:
    folder, moved, other = tmp_path / "folder", tmp_path / "moved", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    with draft(folder / "jobs.backup", force=False):
        folder.rename(moved)
        folder.symlink_to(other)
    assert [one.name for one in moved.iterdir()] == ["jobs.backup"]
    assert not list(other.iterdir())


def test_a_failed_backup_leaves_no_file(database: Database, homes: Path, file: Path) -> None:
    with database.superuser() as connection:
        connection.execute("create table public.secret (a integer)")
    error = failed(homes / "none", "db", "backup", file, dsn=database.dsn, code="backup_failed")
    assert "secret" in error
    assert not list(file.parent.iterdir())


def test_rows_that_a_policy_hides_are_not_left_out_silently(
    database: Database, homes: Path, file: Path
) -> None:
    with database.superuser() as connection:
        connection.execute("create table public.notes (owner text)")
        connection.execute("grant select on public.notes to public")
        connection.execute("alter table public.notes enable row level security")
        connection.execute("create policy own on public.notes using (owner = current_user::text)")
    error = failed(homes / "none", "db", "backup", file, dsn=database.dsn, code="backup_hides_rows")
    assert "public.notes" in error
    assert "trunkline" not in error.partition("Hint")[0]
    run(homes / "none", "db", "backup", file, dsn=database.superuser_dsn)


def test_the_programs_must_be_as_new_as_the_server() -> None:
    with pytest.raises(BackupProgramsMissing, match=r"pg_dump 99 or newer is needed; .*18"):
        programs.find("pg_dump", server=99)
    newest = programs.find("pg_dump", server=16)
    assert newest.major >= 16


def test_a_target_that_is_not_empty_is_left_alone(
    database: Database, homes: Path, file: Path
) -> None:
    run(homes / "none", "db", "backup", file, dsn=database.dsn)
    error = failed(
        homes / "none", "db", "restore", file, dsn=database.dsn, code="restore_target_not_empty"
    )
    assert "schema trunkline" in error


def test_damaged_files_are_refused_before_anything_happens(
    database: Database, homes: Path, file: Path
) -> None:
    run(homes / "none", "db", "backup", file, dsn=database.dsn)
    whole = file.read_bytes()
    with server(homes / "new") as target:
        middle = len(whole) // 2
        flipped = bytes([whole[middle] ^ 1])
        for damaged in (
            b"",
            b"not a tar",
            whole[:middle],
            whole[:middle] + flipped + whole[middle + 1 :],
        ):
            file.write_bytes(damaged)
            failed(homes / "none", "db", "restore", file, dsn=target.dsn, code="backup_unreadable")
        with psycopg.connect(target.dsn) as connection:
            row = connection.execute(
                "select count(*) from pg_roles where rolname = 'trunkline_owner'"
            ).fetchone()
        assert row == (0,)


def test_a_restore_that_fails_leaves_nothing_behind(
    database: Database, homes: Path, file: Path
) -> None:
    # The tests' own schema belongs to the superuser, whom an ordinary role cannot become.
    run(homes / "none", "db", "backup", file, dsn=database.dsn)
    with server(homes / "new") as target:
        failed(homes / "none", "db", "restore", file, dsn=target.dsn, code="restore_refused")
        with psycopg.connect(target.dsn) as connection:
            row = connection.execute(
                "select count(*) filter (where rolname like 'trunkline%'),"
                " to_regnamespace('trunkline') is null from pg_roles"
            ).fetchone()
        assert row == (1, True)


def test_no_password_is_on_a_command_line(homes: Path, file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    seen = tmp_path / "seen"
    with server(homes / "old") as source:
        run(homes / "old", "schema", "install")
        spy = folder / "pg_dump"
        spy.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] || echo "$@" >> {seen}\n'
            f'exec {source.bindir / "pg_dump"} "$@"\n'
        )
        spy.chmod(0o755)
        dsn = run(homes / "old", "db", "dsn", "--tcp").strip()
        password = psycopg.conninfo.conninfo_to_dict(dsn)["password"]
        assert password
        done = trunkline(
            homes / "old",
            "db",
            "backup",
            "--dsn",
            dsn,
            str(file),
            environment={"TRUNKLINE_PG_BINDIR": str(folder)},
        )
        assert done.returncode == 0, done.stderr
    assert "--dbname" in seen.read_text()
    assert str(password) not in seen.read_text()
