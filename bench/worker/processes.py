"""The processes of a contender: a monitored worker, and a producer that takes orders."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.apps import slate
from bench.cpu import cpu_seconds, family
from bench.rivals.product import ROOT, Contender

__all__ = ["Orders", "Watched", "producing", "wait_for", "working"]

_STOP_SECONDS = 30.0
_LENIENT_SECONDS = 10.0
# Jobs are committed when it has replied.
_PRODUCER_SECONDS = 5.0
_LOG_TAIL = 3_000


class Watched:
    """A running worker: one or more commands, with their children."""

    def __init__(
        self, commands: Sequence[subprocess.Popen[bytes]], log: IO[bytes], name: str
    ) -> None:
        self.started = time.monotonic_ns()
        self._commands = commands
        self._log = log
        self._name = name

    def check(self) -> None:
        """Fail if it ended."""
        if any(command.poll() is not None for command in self._commands):
            raise RuntimeError(f"{self._name}'s worker ended too early: {_end_of(self._log)}")

    @property
    def processes(self) -> list[int]:
        """The worker and its descendants."""
        return family(command.pid for command in self._commands)

    @property
    def memory(self) -> float:
        """Resident megabytes of its largest process."""
        return max(_resident(pid) for pid in self.processes)

    @property
    def memory_in_all(self) -> float:
        """Resident megabytes of all its processes; shared memory counts for each."""
        return sum(_resident(pid) for pid in self.processes)

    @property
    def cpu_seconds(self) -> float:
        """Processor time used so far."""
        return cpu_seconds(command.pid for command in self._commands)

    def stop(self, seconds: float = _STOP_SECONDS) -> None:
        """Stop it as a service manager does."""
        for command in self._commands:
            command.send_signal(signal.SIGTERM)
        give_up = time.monotonic() + seconds
        for command in self._commands:
            try:
                code = command.wait(max(0.0, give_up - time.monotonic()))
            except subprocess.TimeoutExpired:
                output = _end_of(self._log)
                raise RuntimeError(f"{self._name}'s worker does not stop: {output}") from None
            if code:
                output = _end_of(self._log)
                raise RuntimeError(f"{self._name}'s worker ended with {code}: {output}")

    def kill(self) -> None:
        """Kill it and all processes that it started."""
        left = self.processes
        for command in self._commands:
            # The group includes processes whose parent has ended.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(command.pid, signal.SIGKILL)
            command.wait()
        # Some processes leave their group.
        for pid in left[len(self._commands) :]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Orders:
    """A producer process that waits for orders; see ``bench.apps.producing``."""

    def __init__(self, process: subprocess.Popen[str], log: IO[bytes], name: str) -> None:
        self._process = process
        self._log = log
        self._name = name
        self.answer()

    def send(self, *order: object) -> None:
        """Send an order without waiting."""
        assert self._process.stdin is not None  # noqa: S101
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the reply to the oldest order."""
        assert self._process.stdout is not None  # noqa: S101
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(f"{self._name}'s producer failed: {_end_of(self._log)}")
        return json.loads(line)

    def do(self, *order: object) -> Any:
        """Send an order and wait for the reply."""
        self.send(*order)
        return self.answer()


@contextmanager
def working(
    contender: Contender,
    slate_path: Path,
    *,
    processes: int = 1,
    variables: Mapping[str, str] | None = None,
    lenient: bool = False,
) -> Iterator[Watched]:
    """Run its worker and stop it after the block; with leniency, ignore a failed stop."""
    with tempfile.TemporaryFile() as log:
        commands: list[subprocess.Popen[bytes]] = []
        watched = Watched(commands, log, contender.name)
        try:
            for command in contender.workers(processes):
                commands.append(  # noqa: PERF401 - if one cannot start, stop the earlier ones
                    subprocess.Popen(
                        command,
                        cwd=ROOT,
                        env={**_environment(contender, slate_path), **(variables or {})},
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        start_new_session=True,
                    )
                )
            yield watched
            if lenient:
                with contextlib.suppress(RuntimeError):
                    watched.stop(_LENIENT_SECONDS)
            else:
                watched.stop()
        finally:
            watched.kill()


@contextmanager
def producing(contender: Contender, slate_path: Path) -> Iterator[Orders]:
    """Run its producer until the end of the block."""
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            contender.producer,
            cwd=ROOT,
            env=_environment(contender, slate_path),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
        try:
            yield Orders(process, log, contender.name)
            assert process.stdin is not None  # noqa: S101
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PRODUCER_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            # Closing its pipes discards an order that it has not read.
            with contextlib.suppress(BrokenPipeError), process:
                pass


def wait_for(
    condition: Callable[[], bool], worker: Watched, *, seconds: float, pause: float = 0.005
) -> None:
    """Wait until a condition holds; fail if the worker ends."""
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


def _end_of(log: IO[bytes]) -> str:
    # Reads at an explicit position, because the writing processes share the file's position.
    begin = max(0, os.fstat(log.fileno()).st_size - _LOG_TAIL)
    return os.pread(log.fileno(), _LOG_TAIL, begin).decode(errors="replace").strip()


def _resident(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0.0
    for line in status.splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0
