"""Several processes share one server, and the last one out stops it, whatever happened."""

import fcntl
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import psycopg

from tests.support.processes import User, until
from trunkline.embedded import acquire, pin, status, stop
from trunkline.embedded.folder import Folder


def test_four_at_once_on_an_empty_folder(home: Path) -> None:
    with ExitStack() as stack:
        users = [stack.enter_context(User(home)) for _ in range(4)]
        reports = [user.report() for user in users]
        assert len({report["postmaster"] for report in reports}) == 1
        assert {report["role"] for report in reports} == {"trunkline_installer"}
        for user in users[:3]:
            assert user.leave() == 0
            assert status(home).running
        assert users[3].leave() == 0
    assert not status(home).running
    log = (home / "postgres.log").read_text()
    assert log.count("ready to accept connections") == 1


def test_a_killed_user_does_not_keep_the_server_up(home: Path) -> None:
    with User(home) as killed, User(home) as other:
        killed.report()
        other.report()
        killed.kill()
        assert status(home).running
        other.leave()
        assert not status(home).running


def test_the_server_stops_after_its_only_user_was_killed(home: Path) -> None:
    with User(home) as killed:
        assert killed.report()["postmaster"]
        killed.kill()
    until(lambda: not status(home).running, "the keeper stopped the server")
    with acquire(home) as server, psycopg.connect(server.dsn) as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_a_pinned_server_stays_after_its_only_user_was_killed(home: Path) -> None:
    with User(home) as killed:
        killed.report()
        pin(home)
        killed.kill()
    keeper = Folder(home).home / "keeper.lock"
    # The keeper of the first start leaves when it sees the pin; after that nobody stops it.
    until(lambda: _free(keeper), "the keeper left")
    assert status(home).running
    assert stop(home)


def test_a_killed_postmaster_is_started_again_with_its_rows(home: Path) -> None:
    with acquire(home) as server, psycopg.connect(server.dsn, autocommit=True) as orphaned:
        orphaned.execute("create table kept as select generate_series(1, 1000) as n")
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        with User(home) as other:
            assert other.report()["postmaster"] != first
            # The membership of the first user still counts, and its string is still right.
            other.leave()
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (1000,)


def test_a_user_can_bring_the_server_back_itself(home: Path) -> None:
    with acquire(home) as server:
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        server.ensure_running()
        assert server.pid not in (None, first)
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("select 1").fetchone() == (1,)


def test_no_second_server_while_a_process_of_the_first_is_left(home: Path) -> None:
    """As seen from another container: the process numbers mean nothing, the lock does."""
    folder = Folder(home)
    with acquire(home) as server:
        assert folder.server_lock(timeout=0) is None
        assert server.pid is not None
    # The last process is gone a moment after it removed its file.
    descriptor = folder.server_lock(timeout=10)
    assert descriptor is not None
    os.close(descriptor)


def test_two_memberships_in_one_process_are_two_users(home: Path) -> None:
    with acquire(home) as outer:
        with acquire(home) as inner:
            assert inner.pid == outer.pid
        assert status(home).running
        outer.close()
        assert not status(home).running


def test_a_killed_initdb_leaves_nothing_behind(home: Path) -> None:
    folder = Folder(home)
    folder.create()
    (home / "data.new").mkdir()
    (home / "data.new" / "half").write_text("made")
    with acquire(home) as server:
        assert server.pid is not None
    assert not (home / "data.new").exists()
    assert not (home / "data" / "half").exists()


def _free(lock: Path) -> bool:
    with lock.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
