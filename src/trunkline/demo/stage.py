"""The stage of the demo: a disposable server and real worker processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trunkline.db.dsn import DSN_VARIABLE
from trunkline.embedded import acquire
from trunkline.schema import install

__all__ = ["Stage", "set_stage"]


class Stage:
    """A server with the schema, and workers on it."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.dsn = dsn
        self._folder = folder
        self._workers: list[subprocess.Popen[bytes]] = []

    def start_worker(self) -> subprocess.Popen[bytes]:
        """Start `trunkline worker` as a user would."""
        number = len(self._workers) + 1
        command = [
            *(sys.executable, "-m", "trunkline", "worker", "trunkline.demo.tasks:app"),
            *("--name", f"worker{number}", "--concurrency", "8", "--grace", "5s"),
            *("--log", "json"),
        ]
        environment = os.environ | {DSN_VARIABLE: self.dsn}
        log = (self._folder / f"worker{number}.log").open("wb")
        with log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        self._workers.append(process)
        return process

    def living(self) -> list[subprocess.Popen[bytes]]:
        """Return the workers that still run."""
        return [worker for worker in self._workers if worker.poll() is None]

    def stop_workers(self) -> None:
        """Ask the workers to stop, and wait until they have."""
        for worker in self.living():
            worker.send_signal(signal.SIGTERM)
        for worker in self._workers:
            try:
                worker.wait(20)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()

    def logs(self) -> str:
        """Return the logs of all workers, for the message of a failure."""
        return "\n".join(path.read_text("utf-8") for path in sorted(self._folder.glob("*.log")))


@contextmanager
def set_stage() -> Iterator[Stage]:
    """Start a server in a temporary folder and install the schema; remove both at the end."""
    with tempfile.TemporaryDirectory(prefix="trunkline-demo-") as folder:
        path = Path(folder)
        with acquire(home=path / "server") as server:
            install(server.dsn)
            stage = Stage(server.dsn, path)
            try:
                yield stage
            finally:
                stage.stop_workers()
