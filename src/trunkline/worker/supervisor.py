"""Several worker processes under one parent, which replaces those that die."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

import msgspec

from trunkline.errors import SchemaNewerThanClient
from trunkline.worker.options import WorkerOptions
from trunkline.worker.stop_signals import STOP_SIGNALS, stop_signals

__all__ = ["Supervisor", "end_with_parent"]

_CHECK_EVERY: Final = 0.1
# After two shorter lives in a row the supervisor waits, so that a broken start does not spin.
_SHORT_LIFE: Final = 10.0
_LONGEST_PAUSE: Final = 30.0
# How long processes may take to end after their grace period.
_PATIENCE: Final = 15.0
_RESTART: Final = 75
_OUTDATED: Final = SchemaNewerThanClient.exit_code
# A process that receives the stop signal before it is ready is killed by it.
_FINE: Final = frozenset({0, _RESTART, *(-number for number in STOP_SIGNALS)})
_PR_SET_PDEATHSIG: Final = 1

_log = logging.getLogger("trunkline.worker.supervisor")


class _Child:
    """One of the N processes, with its successors."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.start_at = 0.0
        self.short_lives = 0
        # Whether the process received a stop signal.
        self.signalled = False
        # Whether this package is too old for the schema.
        self.outdated = False


class Supervisor:
    """Starts the processes, replaces them when they die, and forwards signals."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._children = [_Child(number) for number in range(1, options.processes + 1)]
        self._stop_signals = 0

    def run(self) -> int:
        """Run until a stop signal arrives."""
        for number in stop_signals():
            signal.signal(number, self._on_signal)
        _log.info("supervisor ready", extra={"processes": len(self._children)})
        while not self._stop_signals and not all(child.outdated for child in self._children):
            for child in self._children:
                if not self._stop_signals:
                    self._check(child)
            time.sleep(_CHECK_EVERY)
        return self._end()

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stop_signals += 1
        for child in self._children:
            if child.process is not None and child.process.poll() is None:
                child.signalled = True
                child.process.send_signal(number)

    def _check(self, child: _Child) -> None:
        if child.process is None:
            if child.outdated:
                return
            if time.monotonic() >= child.start_at:
                self._start(child)
            return
        code = child.process.poll()
        if code is None:
            return
        lived = time.monotonic() - child.started
        child.process = None
        if code == _OUTDATED:
            self._retire(child)
            return
        if lived < _SHORT_LIFE:
            # Also after a restart for memory: a limit below an idle process's memory would spin.
            child.short_lives += 1
        else:
            child.short_lives = 0 if code == _RESTART else 1
        pause = min(2.0 ** (child.short_lives - 1), _LONGEST_PAUSE) if child.short_lives > 1 else 0
        child.start_at = time.monotonic() + pause
        _log.log(
            logging.INFO if code == _RESTART else logging.WARNING,
            "process %d ended with %s after %.0f s; its successor starts in %.0f s",
            child.number,
            f"signal {-code}" if code < 0 else f"exit code {code}",
            lived,
            pause,
        )

    def _retire(self, child: _Child) -> None:
        """Start no successor: it has the same package and would end the same way.

        The other processes notice the new schema themselves. A signal would cut short the grace
        period of those that already did.
        """
        _log.error(
            "process %d ended with exit code %d: this package is too old for the schema of the"
            " database (schema_newer_than_client). No successor is started; upgrade the trunkline"
            " package and start the worker again",
            child.number,
            _OUTDATED,
        )
        child.outdated = True

    def _start(self, child: _Child) -> None:
        name = f"{self._options.name}-{child.number}" if self._options.name else None
        options = replace(self._options, processes=1, name=name)
        # Through a pipe: every user can read a command line, and the DSN may contain a password.
        reader, writer = os.pipe()
        # If the child died at once, writing or closing fails. Its exit code reports the error.
        with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "wb") as pipe:
            try:
                child.process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "trunkline.worker.supervised"),
                        *(str(os.getpid()), str(reader)),
                    ],
                    pass_fds=[reader],
                )
            finally:
                os.close(reader)
            pipe.write(msgspec.json.encode(options))
        child.started = time.monotonic()

    def _end(self) -> int:
        end = time.monotonic() + self._options.grace + _PATIENCE
        for child in self._children:
            if child.process is not None and not child.signalled:
                # It was started while the signal arrived.
                child.process.terminate()
        processes = [child.process for child in self._children if child.process is not None]
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                _log.error("process %d did not end; killing it", process.pid)
                process.kill()
                process.wait()
        failed = [process.returncode for process in processes if process.returncode not in _FINE]
        _log.info("supervisor stopped")
        if _OUTDATED in failed or any(child.outdated for child in self._children):
            return _OUTDATED
        return 1 if failed else 0


def end_with_parent(parent: int, stop: Callable[[str], None]) -> None:
    """Stop a supervised process when its supervisor dies, however that happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    loop = asyncio.get_running_loop()

    def check() -> None:
        if os.getppid() != parent:
            stop("the supervisor is gone")
        else:
            loop.call_later(1.0, check)

    check()
