"""The processes of a contender: a worker that is watched, a producer that takes orders."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.apps import slate
from bench.worker.contender import ROOT, Contender

__all__ = ["Orders", "Watched", "producing", "wait_for", "working"]

_STOP_SECONDS = 30.0
_TICKS = os.sysconf("SC_CLK_TCK")
_LOG_TAIL = 3_000


class Watched:
    """A running worker, its children included."""

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes], name: str) -> None:
        self.started = time.monotonic_ns()
        self._process = process
        self._log = log
        self._name = name

    def check(self) -> None:
        """Fail if it ended."""
        if self._process.poll() is not None:
            raise RuntimeError(f"{self._name}'s worker ended too early: {self._said()}")

    @property
    def processes(self) -> list[int]:
        """It and its descendants."""
        found = [self._process.pid]
        for pid in found:
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(child) for child in children.read_text(encoding="ascii").split()]
        return found

    @property
    def memory(self) -> float:
        """Resident megabytes of its largest process."""
        return max(_resident(pid) for pid in self.processes)

    @property
    def memory_in_all(self) -> float:
        """Resident megabytes of all its processes; what they share counts for each."""
        return sum(_resident(pid) for pid in self.processes)

    @property
    def cpu_seconds(self) -> float:
        """Processor time it has used so far."""
        total = 0
        for pid in self.processes:
            # The name of the program is in brackets and may hold anything, so count from behind it.
            after = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += int(after[11]) + int(after[12])
        return total / _TICKS

    def stop(self) -> None:
        """Ask it to end, as a service manager does."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise RuntimeError(f"{self._name}'s worker does not end: {self._said()}") from None
        if code:
            raise RuntimeError(f"{self._name}'s worker ended with {code}: {self._said()}")

    def kill(self) -> None:
        """End it whatever it does."""
        if self._process.poll() is None:
            for pid in reversed(self.processes):
                os.kill(pid, signal.SIGKILL)
            self._process.wait()

    def _said(self) -> str:
        self._log.seek(0)
        return self._log.read()[-_LOG_TAIL:].decode(errors="replace").strip()


class Orders:
    """A producer process that waits for orders; see ``bench.apps.producing``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.answer()

    def send(self, *order: object) -> None:
        """Give an order and go on."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the answer to the oldest order."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("A producer failed; its own message is above")
        return json.loads(line)

    def do(self, *order: object) -> Any:
        """Give an order and wait for the answer."""
        self.send(*order)
        return self.answer()


@contextmanager
def working(contender: Contender, slate_path: Path) -> Iterator[Watched]:
    """Run its worker; end it properly if all went well."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            contender.worker,
            cwd=ROOT,
            env=_environment(contender, slate_path),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        watched = Watched(process, log, contender.name)
        try:
            yield watched
            watched.stop()
        finally:
            watched.kill()


@contextmanager
def producing(contender: Contender, slate_path: Path) -> Iterator[Orders]:
    """Run its producer until the end of the block."""
    process = subprocess.Popen(
        contender.producer,
        cwd=ROOT,
        env=_environment(contender, slate_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Orders(process)
    finally:
        assert process.stdin is not None  # noqa: S101
        process.stdin.close()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(
    condition: Callable[[], bool], worker: Watched, *, seconds: float, pause: float = 0.005
) -> None:
    """Wait until something is so, as long as the worker lives."""
    give_up = time.monotonic() + seconds
    while not condition():
        worker.check()
        if time.monotonic() > give_up:
            raise RuntimeError(f"Not reached within {seconds:.0f} s; the worker may hang")
        time.sleep(pause)


def _environment(contender: Contender, slate_path: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PG", "TRUNKLINE_"))
    }
    return {**kept, **contender.environment, slate.VARIABLE: str(slate_path)}


def _resident(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
