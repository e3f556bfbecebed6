"""The studio at work: the profile, a store, a model that counts, and real pools of workers."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import pytest

from profiles.tests.studio.conftest import Studio
from tests.support import servers
from tests.support.servers import Server
from tests.support.waiting import until
from trunkline.artifacts import LocalStore
from trunkline_profiles.studio.stubs.model import Model, TextModel

_T = TypeVar("_T")


class Scene:
    """The environment of one test."""

    def __init__(self, studio: Studio, folder: Path) -> None:
        self.studio = studio
        self.folder = folder
        self.root = folder / "store"
        self.model = TextModel(Model())
        self.workers: list[subprocess.Popen[bytes]] = []

    @property
    def store(self) -> LocalStore:
        return LocalStore(self.root)

    def work(self, *pools: str, **environment: str) -> list[subprocess.Popen[bytes]]:
        """Start a worker process for each pool."""
        given = {
            "TRUNKLINE_DSN": self.studio.database.dsn,
            "TRUNKLINE_STORE": self.root.as_uri(),
            "TRUNKLINE_STUDIO_MODEL_URL": f"{self.model.url}/v1",
        }
        started = []
        for pool in pools:
            with self.log.open("ab") as log:
                started.append(
                    subprocess.Popen(
                        [sys.executable, "-m", "trunkline_profiles.studio", pool],
                        env=os.environ | given | environment,
                        stdout=log,
                        stderr=log,
                    )
                )
        self.workers += started
        return started

    @property
    def log(self) -> Path:
        return self.folder / "workers.log"

    def later(self, interval: str) -> None:
        """Let time pass, and wake workers that sleep until a task is due."""
        self.studio.pass_time(interval)
        self.studio.worker.connection.execute("select trunkline.run_duties()")

    def status(self, job: UUID) -> str:
        status: str = self.studio.operator.value(
            "select status from studio.jobs where id = %s", job
        )
        return status

    def files(self, job: UUID) -> dict[str, bytes]:
        """The published files of a job by their names."""
        return {
            row.name: b"".join(self.store.read(row.storage_path))
            for row in self.studio.artifacts(job)
        }

    def wait(self, condition: Callable[[], _T], what: str) -> _T:
        """Wait until a condition holds; fail if a worker ended by itself."""

        def look() -> _T:
            ended = [worker.poll() for worker in self.workers]
            if not all(code in {None, 0, -signal.SIGKILL} for code in ended):
                raise AssertionError(f"a worker ended: {ended}")
            return condition()

        try:
            return until(look, what)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-3000:]}") from error

    def ended(self, job: UUID) -> str:
        """Wait until a job has ended; return how."""
        self.wait(
            lambda: self.status(job) in {"complete", "failed", "cancelled"}, f"job {job} has ended"
        )
        return self.status(job)

    def close(self) -> None:
        for worker in self.workers:
            worker.kill()
        self.model.close()
        for worker in self.workers:
            worker.wait()


@pytest.fixture(scope="session", params=servers.majors()[-1:], ids=lambda major: f"pg{major}")
def server(request: pytest.FixtureRequest) -> Server:
    """Only the newest server: workers behave the same on each, and their SQL is tested on all."""
    found = {server.major: server for server in request.config.stash[servers.STASH]}
    return found[request.param]


@pytest.fixture
def scene(studio: Studio, tmp_path: Path) -> Iterator[Any]:
    made = Scene(studio, tmp_path)
    yield made
    made.close()


@pytest.fixture
def three(scene: Scene) -> Scene:
    """Orders have three documents, which is enough for every rule."""
    scene.studio.database.connect("trunkline_owner").execute(
        "delete from studio.documents where document > 3"
    )
    return scene
