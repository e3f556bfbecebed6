"""The command that `scale --hook` runs when the wanted number of workers changes."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

import click

from trunkline.cli.output import clean
from trunkline.model import WorkerTarget

__all__ = ["Hook"]

_Key = tuple[str, tuple[str, ...]]
_MOST_OUTPUT = 2000
_RETRY_AFTER = 30.0


class Hook:
    """Runs a command for each queue and set of tasks whose wanted number changed.

    The first number of each counts as a change. A command that failed runs again after 30 seconds.
    """

    def __init__(
        self,
        command: str,
        timeout: float,
        report: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        try:
            self._command = shlex.split(command)
        except ValueError as error:
            raise click.BadParameter(f"{command!r}: {error}.") from None
        if not self._command:
            raise click.BadParameter("The command is empty.")
        self._timeout = timeout
        self._report = report
        self._clock = clock
        self._applied: dict[_Key, int] = {}
        self._retry_at: dict[_Key, float] = {}

    def see(self, targets: Sequence[WorkerTarget]) -> None:
        """Run the command for each target that changed; one that disappeared wants no worker."""
        seen = {(target.queue, tuple(target.tasks or ())): target for target in targets}
        for key in self._applied.keys() - seen.keys():
            tasks = list(key[1]) or None
            seen[key] = WorkerTarget(key[0], tasks, 0, 0, 0, 0, None, 0)
        for key, target in seen.items():
            if self._applied.get(key) == target.wanted:
                continue
            if self._clock() < self._retry_at.get(key, 0.0):
                continue
            if self._run(target, self._applied.get(key)):
                self._applied[key] = target.wanted
                self._retry_at.pop(key, None)
            else:
                self._retry_at[key] = self._clock() + _RETRY_AFTER
        # A target that is gone and applied needs no memory.
        present = {(target.queue, tuple(target.tasks or ())) for target in targets}
        for key in [key for key, wanted in self._applied.items() if not wanted]:
            if key not in present:
                del self._applied[key]

    def _run(self, target: WorkerTarget, before: int | None) -> bool:
        environment = {
            **os.environ,
            "SCALE_QUEUE": target.queue,
            "SCALE_TASKS": ",".join(target.tasks or ()),
            "SCALE_WANTED": str(target.wanted),
            "SCALE_BEFORE": "" if before is None else str(before),
            "SCALE_WORKERS": str(target.workers),
            "SCALE_STARTABLE": str(target.startable),
            "SCALE_RUNNING": str(target.running),
        }
        try:
            process = subprocess.Popen(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._report(f"The hook could not be started: {clean(str(error))}")
            return False
        with process:
            try:
                output, _ = process.communicate(timeout=self._timeout)
            except BaseException as error:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                self._report(f"The hook was stopped after {self._timeout:g} seconds.")
                return False
        text = clean(output.decode(errors="replace")[-_MOST_OUTPUT:].strip())
        if process.returncode:
            self._report(f"The hook failed with exit code {process.returncode}. {text}".rstrip())
        elif text:
            self._report(text)
        return process.returncode == 0
