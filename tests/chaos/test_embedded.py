"""The embedded server has nobody but its users to look after it."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chaos.private_server import PrivateServer, running
from tests.chaos.scene import RETURN, Scene
from tests.support import servers
from tests.support.databases import Database
from trunkline import schema

EMBEDDED = 18


@pytest.fixture
def home(tmp_path: Path) -> Path:
    if EMBEDDED not in servers.majors():
        pytest.skip("the embedded server is left out")
    return tmp_path / "home"


@pytest.fixture
def embedded(home: Path) -> Iterator[PrivateServer]:
    with running(home, EMBEDDED) as made:
        schema.install(made.server.installer_dsn)
        yield made


@pytest.fixture
def own_scene(embedded: PrivateServer, tmp_path: Path) -> Iterator[Scene]:
    """A scene in the database that everybody without a connection string shares."""
    made = Scene(Database(embedded.server, "trunkline"), tmp_path)
    try:
        yield made
    finally:
        made.close()


def test_a_worker_starts_its_killed_server_again(
    embedded: PrivateServer, own_scene: Scene, home: Path
) -> None:
    scene = own_scene
    worker = scene.start(environment={"TRUNKLINE_DSN": "", "TRUNKLINE_HOME": str(home)})
    held = scene.enqueue("lingers", 2, gate="away")
    scene.until(lambda: [run.finished for run in scene.runs(*held)] == [True] * 2, "work is done")
    embedded.stop(signal.SIGKILL)
    scene.open("away")
    scene.until(lambda: embedded.up and scene.value("select true"), "the server is back")
    back = time.monotonic()
    scene.until_all("completed", scene.enqueue("quick", 3))
    assert time.monotonic() - back <= RETURN
    scene.until_all("completed")
    assert {scene.job(job).attempt for job in held} == {1}
    worker.require_alive()
    scene.require_balance()
