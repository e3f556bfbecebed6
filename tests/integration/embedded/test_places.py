"""Where the server can live, and where it says why it cannot."""

import os
import socket
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from tests.support.processes import trunkline
from trunkline.embedded import acquire, service, status, stop
from trunkline.embedded.folder import Folder
from trunkline.errors import EmbeddedBinariesMissing, EmbeddedDataVersion, EmbeddedFolderUnsafe


def test_a_long_path_works_through_a_short_socket_directory(home: Path) -> None:
    deep = home.joinpath(*["a-rather-long-folder-name-" + "x" * 30] * 4)
    with acquire(deep) as server:
        sockets = server.folder.socket_directory
        assert deep not in sockets.parents
        assert sockets.stat().st_mode & 0o777 == 0o700
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
    sockets.rmdir()


@pytest.mark.parametrize(("length", "own"), [(50, True), (90, False)])
def test_a_socket_directory_is_in_the_temporary_folder_unless_that_is_long_too(
    home: Path, monkeypatch: pytest.MonkeyPatch, length: int, own: bool
) -> None:
    """Systems that give each user a temporary folder name it with about 50 characters."""
    deep = home.joinpath("x" * 100)
    deep.mkdir(parents=True)
    monkeypatch.setattr("tempfile.tempdir", "/t" + "m" * (length - 2))
    base = Path(tempfile.gettempdir() if own else "/tmp")  # noqa: S108 - as the product does
    assert Folder(deep).socket_directory.parent == base


def test_data_of_another_major_version_is_refused(home: Path) -> None:
    data = home / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedDataVersion) as refusal:
        acquire(home)
    assert refusal.value.data == 12
    assert 18 in refusal.value.programs
    assert "trunkline db backup" in refusal.value.hint


def test_missing_programs_are_refused(home: Path, tmp_path: Path) -> None:
    with pytest.raises(EmbeddedBinariesMissing) as refusal:
        acquire(home, bindir=tmp_path)
    assert str(tmp_path) in refusal.value.message
    assert "TRUNKLINE_PG_BINDIR" in refusal.value.hint
    assert not (home / "data").exists()


def test_the_variable_names_the_programs(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUNKLINE_PG_BINDIR", str(tmp_path))
    with pytest.raises(EmbeddedBinariesMissing) as refusal:
        acquire(home)
    assert refusal.value.searched == [str(tmp_path)]


def test_the_port_is_kept_unless_somebody_took_it(home: Path) -> None:
    with acquire(home) as server:
        first = server.folder.port
    with acquire(home) as server:
        assert server.folder.port == first
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", first or 0))
        taken.listen()
        with acquire(home) as server:
            assert server.folder.port != first


def test_only_loopback_and_only_with_the_password(home: Path) -> None:
    with acquire(home) as server:
        port = server.folder.port
        good = f"host=127.0.0.1 port={port} dbname=trunkline user=trunkline_installer"
        with psycopg.connect(good, password=server.folder.password) as connection:
            row = connection.execute("select current_setting('listen_addresses')").fetchone()
            assert row == ("127.0.0.1",)
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(good, password="guess")
        with pytest.raises(psycopg.OperationalError, match="rejects"):
            psycopg.connect(f"host=127.0.0.1 port={port} dbname=postgres user=postgres")
        for private in ("data", "run", "password", "postgres.log"):
            assert (home / private).stat().st_mode & 0o077 == 0, private


def test_the_role_handed_out_is_not_a_superuser(home: Path) -> None:
    with acquire(home) as server, psycopg.connect(server.dsn) as connection:
        row = connection.execute(
            "select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, "
            "has_database_privilege(current_database(), 'create') "
            "from pg_roles where rolname = current_user"
        ).fetchone()
        assert row == (False, True, False, False, True)
        row = connection.execute(
            "select datcollate, pg_encoding_to_char(encoding) from pg_database "
            "where datname = current_database()"
        ).fetchone()
        assert row == ("C.UTF-8", "UTF8")


def test_a_pin_from_before_a_crash_of_the_machine_is_void(home: Path) -> None:
    with acquire(home) as server:
        (home / "pinned").write_text("a boot long ago")
        assert not status(home).pinned
        assert server.pid is not None
    assert not status(home).running


def test_a_stale_process_number_is_not_taken_for_the_server(home: Path) -> None:
    with acquire(home) as server:
        database = server.folder.data
    folder = Folder(home)
    folder.pinned = True
    with subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE) as bystander:
        try:
            # As after a crash of the machine, with the number now another program's.
            stale = database / "postmaster.pid"
            stale.write_text(f"{bystander.pid}\n{database}\n")
            state = status(home)
            assert (state.running, state.pinned, state.pid) == (False, False, None)
            assert not stop(home, force=True)
            assert bystander.poll() is None
            stale.write_text(f"{bystander.pid}\n{database}\n")
            with acquire(home) as server, psycopg.connect(server.dsn) as connection:
                assert server.pid != bystander.pid
                assert connection.execute("select 1").fetchone() == (1,)
            assert not status(home).running
            assert bystander.poll() is None
        finally:
            (database / "postmaster.pid").unlink(missing_ok=True)
            bystander.kill()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(home: Path, mode: int) -> None:
    home.mkdir()
    home.chmod(mode)
    for command in (acquire, status, stop):
        with pytest.raises(EmbeddedFolderUnsafe) as refusal:
            command(home)
        assert f"chmod go-w {home}" in refusal.value.hint
    assert not list(home.iterdir())
    told = trunkline(home, "db", "start")
    assert told.returncode == 1
    assert f"chmod go-w {home}" in told.stderr
    home.chmod(0o700)


@pytest.mark.parametrize("name", ["start.lock", "password", "port"])
@pytest.mark.parametrize("kind", ["link", "fifo"])
def test_links_and_fifos_in_the_folder_are_refused(home: Path, name: str, kind: str) -> None:
    home.mkdir(mode=0o700)
    victim = home.parent / "victim"
    victim.write_text("5432")
    (home / "port").write_text("5432")
    (home / name).unlink(missing_ok=True)
    if kind == "link":
        (home / name).symlink_to(victim)
    else:
        os.mkfifo(home / name)
    with pytest.raises(EmbeddedFolderUnsafe) as refusal:
        _ = stop(home) if name == "start.lock" else service.dsn(home, tcp=True)
    assert f"rm {home / name}" in refusal.value.hint
    (home / name).unlink()
    assert victim.read_text() == "5432"
