"""The server's disk is full: a clear error, nothing lost, and work goes on when there is space."""

import random
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from tests.chaos.private_server import PrivateServer, running
from tests.chaos.scene import Scene
from tests.chaos.small_disk import SmallDisk, mounted
from tests.chaos.test_server import require_resumed
from tests.support import servers
from trunkline import Trunkline
from trunkline.errors import (
    ConnectionLost,
    DatabaseFull,
    DatabaseUnreachable,
    ServerNotReady,
    TrunklineError,
)

# Too long to be kept beside the job, and nothing that compresses.
BODY = random.Random(5).randbytes(30_000).hex()


@pytest.fixture
def small(tmp_path: Path) -> Iterator[SmallDisk]:
    with mounted(tmp_path / "disk", 48) as disk:
        yield disk


@pytest.fixture
def full_scene(tmp_path: Path, small: SmallDisk) -> Iterator[Scene]:
    """A database whose tables are on the small disk."""
    with ExitStack() as stack:
        private = stack.enter_context(running(tmp_path / "home", servers.majors()[-1]))
        with psycopg.connect(private.server.superuser_dsn, autocommit=True) as admin:
            admin.execute(
                sql.SQL("create tablespace small location {}").format(sql.Literal(str(small.path)))
            )
        database = stack.enter_context(private.database(tablespace="small"))
        scene = Scene(database, tmp_path)
        stack.callback(scene.close)
        scene.superuser.execute("checkpoint")
        yield scene


def test_full_tables(full_scene: Scene, small: SmallDisk) -> None:
    scene = full_scene
    worker = scene.start("--concurrency", "4")
    held = scene.enqueue("writes_much", 3, gate="full", length=len(BODY))
    scene.until_running(held)
    small.fill()
    made, error = _enqueue_until_refused(scene)
    scene.jobs += made
    assert isinstance(error, DatabaseFull)
    assert error.code == "database_full"
    assert "space" in error.hint
    scene.open("full")
    scene.until(lambda: worker.says("database_full"), "the worker says what is wrong")
    small.free()
    require_resumed(scene, worker, time.monotonic())
    scene.until_all("completed")
    scene.require_balance()


@pytest.mark.slow
def test_a_full_log_stops_the_server_and_loses_nothing(tmp_path: Path) -> None:
    """Without space for its write-ahead log PostgreSQL ends itself: a crash like any other."""
    with ExitStack() as stack:
        private = stack.enter_context(
            running(
                tmp_path / "home",
                servers.majors()[-1],
                {"max_wal_size": "32MB", "min_wal_size": "32MB", "restart_after_crash": "off"},
            )
        )
        disk = stack.enter_context(_log_on_small_disk(private, tmp_path / "disk"))
        database = stack.enter_context(private.database())
        scene = Scene(database, tmp_path)
        stack.callback(scene.close)
        worker = scene.start("--concurrency", "4")
        # Like a standby that went away: the log is kept and not used again.
        scene.superuser.execute("select pg_create_physical_replication_slot('standby', true)")
        disk.fill()
        acknowledged, error = _enqueue_until_refused(scene)
        assert len(acknowledged) > 10
        assert error.hint
        scene.until(lambda: not private.up, "the server has ended itself")
        disk.free()
        private.start()
        back = time.monotonic()
        require_resumed(scene, worker, back)
        scene.jobs = [
            row[0] for row in scene.superuser.execute("select job_id from trunkline.jobs")
        ]
        assert set(acknowledged) <= set(scene.jobs)
        scene.until_all("completed")
        scene.require_balance()


@contextmanager
def _log_on_small_disk(private: PrivateServer, path: Path) -> Iterator[SmallDisk]:
    """Move the write-ahead log; the server is stopped before the disk goes."""
    with mounted(path, 80) as disk:
        private.stop()
        log = private.data / "pg_wal"
        shutil.copytree(log, disk.path / "wal")
        shutil.rmtree(log)
        log.symlink_to(disk.path / "wal")
        private.start()
        try:
            yield disk
        finally:
            disk.free()
            private.start()
            private.stop()


def _enqueue_until_refused(scene: Scene) -> tuple[list[UUID], TrunklineError]:
    """Enqueue large jobs until the server has no space; return the acknowledged and the error."""
    made: list[UUID] = []
    with Trunkline(scene.database.dsn).sync as client:
        while True:
            try:
                made.append(client.jobs.enqueue("swallows", {"body": BODY}).id)
            except (ConnectionLost, DatabaseFull, DatabaseUnreachable, ServerNotReady) as error:
                return made, error
