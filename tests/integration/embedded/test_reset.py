"""``trunkline db reset`` moves the data of the embedded server aside and deletes nothing."""

from __future__ import annotations

import json
import os
import pwd
import re
import stat
from pathlib import Path

import psycopg
import pytest

from tests.cli.terminal import PROGRAM, Terminal
from tests.support.older import apply
from tests.support.processes import User, trunkline
from trunkline.embedded import acquire, reset, status
from trunkline.errors import EmbeddedFolderUnsafe

_MARK = "create table if not exists mark ()"
_MARKED = "select to_regclass('mark') is not null"


@pytest.fixture
def filled(home: Path) -> Path:
    """A folder whose server has a table, and is stopped."""
    with acquire(home) as server, psycopg.connect(server.dsn) as connection:
        connection.execute(_MARK)
    return home


def is_marked(home: Path) -> bool:
    with acquire(home) as server, psycopg.connect(server.dsn) as connection:
        return connection.execute(_MARKED).fetchone() == (True,)


def moved(home: Path) -> list[str]:
    return sorted(path.name for path in home.iterdir() if path.name.startswith("data-"))


def test_the_data_is_moved_and_the_next_start_is_empty(filled: Path) -> None:
    done = trunkline(filled, "db", "reset", "--yes")
    assert (done.returncode, done.stderr) == (0, "")
    (name,) = moved(filled)
    assert re.fullmatch(r"data-\d{8}-\d{6}", name)
    assert f"Data moved to {filled / name}." in done.stdout
    assert not (filled / "data").exists()
    assert not is_marked(filled)
    # What was moved is complete: put back, it is the old server.
    (filled / "data").rename(filled / "new")
    (filled / name).rename(filled / "data")
    assert is_marked(filled)


def test_an_answer_of_no_leaves_everything(filled: Path) -> None:
    with Terminal(*PROGRAM, "db", "reset", home=filled) as terminal:
        terminal.until("Go on? [y/N]")
        assert terminal.answer("n") == 130
        assert "Data moved" not in terminal.text
    assert moved(filled) == []
    assert is_marked(filled)


def test_an_answer_of_yes_moves_the_data(filled: Path) -> None:
    with Terminal(*PROGRAM, "db", "reset", home=filled, columns=200) as terminal:
        terminal.until("Go on? [y/N]", str(filled))
        assert terminal.answer("y") == 0
        assert "Data moved to" in terminal.text
    assert len(moved(filled)) == 1


def test_without_a_terminal_it_takes_yes(filled: Path) -> None:
    done = trunkline(filled, "db", "reset")
    assert done.returncode == 2
    assert "Pass --yes" in done.stderr
    assert moved(filled) == []


def test_a_server_that_runs_is_stopped_first(filled: Path) -> None:
    assert trunkline(filled, "db", "start").returncode == 0
    assert status(filled).pinned
    done = trunkline(filled, "db", "reset", "--yes", "--json")
    assert json.loads(done.stdout) == {"moved_to": str(filled / moved(filled)[0])}
    assert not status(filled).running
    assert not is_marked(filled)
    assert not status(filled).running


def test_a_server_in_use_is_reset_only_by_force(filled: Path) -> None:
    with User(filled) as user:
        user.report()
        refused = trunkline(filled, "db", "reset", "--yes")
        assert refused.returncode == 1
        assert "Code: embedded_in_use" in refused.stderr
        assert moved(filled) == []
        assert status(filled).running
        assert trunkline(filled, "db", "reset", "--yes", "--force").returncode == 0
    assert len(moved(filled)) == 1


@pytest.mark.parametrize("exists", [False, True])
def test_nothing_to_reset_is_no_error_and_asks_nothing(home: Path, exists: bool) -> None:
    if exists:
        home.mkdir(mode=0o700)
    done = trunkline(home, "db", "reset")
    assert (done.returncode, done.stdout.strip()) == (
        0,
        f"Nothing to reset: there is no data in {home}.",
    )
    assert home.exists() is exists
    assert json.loads(trunkline(home, "db", "reset", "--json").stdout) == {"moved_to": None}


def test_it_is_what_a_schema_from_before_the_baseline_needs(home: Path) -> None:
    assert trunkline(home, "schema", "install").returncode == 0
    with acquire(home) as server, psycopg.connect(server.superuser_dsn) as superuser:
        apply(superuser)
    for command in (("queues", "list"), ("schema", "install"), ("up",)):
        refused = trunkline(home, *command)
        assert refused.returncode == 1
        assert "Code: schema_predates_baseline" in refused.stderr
        assert "trunkline db reset" in refused.stderr
    assert trunkline(home, "db", "reset", "--yes").returncode == 0
    assert trunkline(home, "queues", "list").returncode == 0
    assert trunkline(home, "schema", "verify").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_root_moves_the_data_of_another_user_and_follows_no_link(home: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    home.mkdir(mode=0o700)
    data = home / "data"
    data.mkdir(mode=0o700)
    (data / "PG_VERSION").write_text("18\n")
    for path in (home, data, data / "PG_VERSION"):
        os.chown(path, nobody.pw_uid, nobody.pw_gid)
    aside = reset(home)
    assert aside is not None
    assert aside.parent == home
    assert (aside.stat().st_uid, stat.S_IMODE(aside.stat().st_mode)) == (nobody.pw_uid, 0o700)
    victim = home.parent / "precious"
    victim.mkdir()
    (victim / "inside").write_text("precious")
    data.symlink_to(victim)
    with pytest.raises(EmbeddedFolderUnsafe):
        reset(home)
    assert data.is_symlink()
    data.unlink()
    assert (victim / "inside").read_text() == "precious"
