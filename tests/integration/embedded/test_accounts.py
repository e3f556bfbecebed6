"""As whom the server runs: ordinary users, root, and who else gets in."""

import os
import pwd
import subprocess
from pathlib import Path

import psycopg
import pytest

from tests.support.processes import User, interpreter_for, package_path
from trunkline.embedded import acquire, binaries, status
from trunkline.errors import EmbeddedPlatform

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")


def _nobody() -> pwd.struct_passwd:
    return pwd.getpwnam("nobody")


def test_an_ordinary_user(home: Path) -> None:
    if os.geteuid() != 0:
        with acquire(home) as server:
            assert server.folder.data.stat().st_uid == os.geteuid()
        return
    uid = _nobody().pw_uid
    python, reason = interpreter_for(uid)
    if python is None:
        pytest.skip(f"user nobody cannot run Python with our packages: {reason}")
    home.mkdir(mode=0o700)
    os.chown(home, uid, _nobody().pw_gid)
    environment = {"PYTHONPATH": package_path(), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(home)}
    with User(home, python=python, uid=uid, environment=environment) as user:
        postmaster = user.report()["postmaster"]
        assert Path(f"/proc/{postmaster}").stat().st_uid == uid
        # Root may use it too, without changing who owns what.
        with acquire(home) as server, psycopg.connect(server.dsn) as connection:
            assert server.pid == postmaster
            assert connection.execute("select 1").fetchone() == (1,)
        assert user.leave() == 0
    assert not status(home).running
    assert {path.stat().st_uid for path in home.rglob("*")} == {uid}


@needs_root
def test_root_starts_a_server_that_belongs_to_somebody_else(home: Path) -> None:
    nobody = _nobody()
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    try:
        server = acquire(home)
    except EmbeddedPlatform as refusal:
        pytest.skip(f"user nobody cannot run the programs: {refusal.message}")
    with server:
        assert Path(f"/proc/{server.pid}").stat().st_uid == nobody.pw_uid
    assert (home / "start.lock").stat().st_uid == nobody.pw_uid


@needs_root
def test_root_drops_to_an_account_where_namespaces_are_forbidden(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with acquire(home) as server, psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("create table kept as select 1 as n")
        assert server.folder.data.stat().st_uid == 0
    monkeypatch.setenv("PATH", str(home))  # unshare is not there
    try:
        server = acquire(home)
    except EmbeddedPlatform as refusal:
        pytest.skip(f"no account can run the programs: {refusal.message}")
    with server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("select n from kept").fetchone() == (1,)
        assert server.folder.data.stat().st_uid != 0
        assert (home / "password").stat().st_mode & 0o077 == 0


@needs_root
def test_root_drops_to_an_account_for_a_first_start_too(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))  # unshare is not there
    try:
        server = acquire(home)
    except EmbeddedPlatform as refusal:
        pytest.skip(f"no account can run the programs: {refusal.message}")
    with server:
        assert server.folder.data.stat().st_uid != 0


@needs_root
def test_where_neither_way_works_the_refusal_names_both(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.chmod(0o700)
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(EmbeddedPlatform) as refusal:
        acquire(home)
    assert "root" in refusal.value.message
    assert "TRUNKLINE_HOME" in refusal.value.hint
    assert home.stat().st_mode & 0o777 == 0o700


@needs_root
@pytest.mark.parametrize("out_of_reach", ["programs", "folder"])
def test_data_of_an_account_that_cannot_use_it_is_refused(home: Path, out_of_reach: str) -> None:
    """Before anything is created: a half-made folder would be in the way of the remedy."""
    nobody = _nobody()
    home.mkdir(mode=0o700)
    os.chown(home, nobody.pw_uid, nobody.pw_gid)
    bindir: Path | None = None
    if out_of_reach == "programs":
        bindir = home.parent / "private"
        bindir.mkdir(mode=0o700)
        found = binaries.find(home / "data", None)
        for name in ("initdb", "pg_ctl", "postgres"):
            (bindir / name).symlink_to(found.program(name))
    else:
        home.parent.chmod(0o700)
    with pytest.raises(EmbeddedPlatform) as refusal:
        acquire(home, bindir=bindir)
    assert f"user id {nobody.pw_uid}" in refusal.value.message
    assert str(bindir or home) in refusal.value.message
    assert refusal.value.hint
    assert not (home / "data").exists()
    assert not (home / "data.new").exists()
    assert not status(home).running


@needs_root
def test_other_accounts_do_not_reach_the_socket(home: Path) -> None:
    with acquire(home) as server:
        path = server.folder.socket_directory / f".s.PGSQL.{server.folder.port}"
        assert path.is_socket()
        probe = subprocess.run(
            ["/usr/bin/stat", str(path)],
            user=_nobody().pw_uid,
            group=_nobody().pw_gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert probe.returncode != 0
        assert "Permission denied" in probe.stderr
