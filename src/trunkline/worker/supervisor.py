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

_LOOK: Final = 0.1
# A process that dies sooner is not replaced at once, so that a broken start does not spin.
_SHORT_LIFE: Final = 10.0
_LONGEST_PAUSE: Final = 30.0
# Beyond the grace of the workers themselves.
_PATIENCE: Final = 15.0
_RESTART: Final = 75
_OUTDATED: Final = SchemaNewerThanClient.exit_code
# A process that was told to stop before it was ready dies of the signal.
_FINE: Final = frozenset({0, _RESTART, *(-number for number in STOP_SIGNALS)})
_PR_SET_PDEATHSIG: Final = 1

_log = logging.getLogger("trunkline.worker.supervisor")


class _Place:
    """One of the N processes, over its successive lives."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.process: subprocess.Popen[bytes] | None = None
        self.started = 0.0
        self.start_at = 0.0
        self.short_lives = 0
        # Whether the process was told to stop.
        self.told = False
        # Whether this package is too old for the schema.
        self.given_up = False


class Supervisor:
    """Starts the processes, watches them, passes signals on."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._places = [_Place(number) for number in range(1, options.processes + 1)]
        self._stop_signals = 0

    def run(self) -> int:
        """Run until told to stop."""
        for number in stop_signals():
            signal.signal(number, self._on_signal)
        _log.info("supervisor ready", extra={"processes": len(self._places)})
        while not self._stop_signals and not all(place.given_up for place in self._places):
            for place in self._places:
                if not self._stop_signals:
                    self._look_after(place)
            time.sleep(_LOOK)
        return self._end()

    def _on_signal(self, number: int, _frame: object) -> None:
        self._stop_signals += 1
        for place in self._places:
            if place.process is not None and place.process.poll() is None:
                place.told = True
                place.process.send_signal(number)

    def _look_after(self, place: _Place) -> None:
        if place.process is None:
            if place.given_up:
                return
            if time.monotonic() >= place.start_at:
                self._start(place)
            return
        code = place.process.poll()
        if code is None:
            return
        lived = time.monotonic() - place.started
        place.process = None
        if code == _OUTDATED:
            self._give_up(place)
            return
        if lived < _SHORT_LIFE:
            # Also for want of memory: a limit below what an idle process takes would spin.
            place.short_lives += 1
        else:
            place.short_lives = 0 if code == _RESTART else 1
        pause = min(2.0 ** (place.short_lives - 1), _LONGEST_PAUSE) if place.short_lives > 1 else 0
        place.start_at = time.monotonic() + pause
        _log.log(
            logging.INFO if code == _RESTART else logging.WARNING,
            "process %d ended with %s after %.0f s; its successor starts in %.0f s",
            place.number,
            f"signal {-code}" if code < 0 else f"exit code {code}",
            lived,
            pause,
        )

    def _give_up(self, place: _Place) -> None:
        """Start no successor: it has the same package and would end the same way.

        The other processes notice by themselves. A signal would cut short the grace period of those
        that already did.
        """
        _log.error(
            "process %d ended with exit code %d: this package is too old for the schema of the"
            " database (schema_newer_than_client). No successor is started; upgrade the trunkline"
            " package and start the worker again",
            place.number,
            _OUTDATED,
        )
        place.given_up = True

    def _start(self, place: _Place) -> None:
        name = f"{self._options.name}-{place.number}" if self._options.name else None
        options = replace(self._options, processes=1, name=name)
        # Through a pipe: every user can read a command line, and the DSN may contain a password.
        reader, writer = os.pipe()
        # A child that died at once is noticed by its exit code. Closing the pipe may fail, too.
        with contextlib.suppress(BrokenPipeError), os.fdopen(writer, "wb") as pipe:
            try:
                place.process = subprocess.Popen(
                    [
                        *(sys.executable, "-m", "trunkline.worker.supervised"),
                        *(str(os.getpid()), str(reader)),
                    ],
                    pass_fds=[reader],
                )
            finally:
                os.close(reader)
            pipe.write(msgspec.json.encode(options))
        place.started = time.monotonic()

    def _end(self) -> int:
        end = time.monotonic() + self._options.grace + _PATIENCE
        for place in self._places:
            if place.process is not None and not place.told:
                # Started while the signal came.
                place.process.terminate()
        processes = [place.process for place in self._places if place.process is not None]
        for process in processes:
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                _log.error("process %d did not end; killing it", process.pid)
                process.kill()
                process.wait()
        failed = [process.returncode for process in processes if process.returncode not in _FINE]
        _log.info("supervisor stopped")
        if _OUTDATED in failed or any(place.given_up for place in self._places):
            return _OUTDATED
        return 1 if failed else 0


def end_with_parent(parent: int, stop: Callable[[str], None]) -> None:
    """Make sure that a supervised process does not outlive its supervisor, however that dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    loop = asyncio.get_running_loop()

    def look() -> None:
        if os.getppid() != parent:
            stop("the supervisor is gone")
        else:
            loop.call_later(1.0, look)

    look()
