"""Runs tests in a copy until one fails, and confirms that it fails because of the mutation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.workspace import Workspace

__all__ = ["Failure", "Stopped", "TrialError", "Trials", "run"]

# For one test, against hangs; the suite's own limit is for machines under load.
_TEST_SECONDS = 300
# Seconds in which no test begins or ends, for example if the servers of the tests do not start.
_SILENT_SECONDS = 600
_PASSED, _NOTHING = 0, 5
# SIGINT stops the servers of the tests, even if our own caller ignores it. The empty entry that -c
# adds to the path would be the current folder.
_PYTEST = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.remove("")
sys.exit(pytest.main(sys.argv[1:]))
"""


class TrialError(Exception):
    """pytest ended without a result; the message is the end of its output."""


class Stopped(Exception):
    """The run was interrupted; the current mutation has no result."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The first test that failed."""

    test: str
    phase: str
    reason: str
    timeout: bool = False


@dataclass(frozen=True, slots=True)
class Trials:
    """Outcome of one run: the failures, in order, and how many tests ran."""

    failures: tuple[Failure, ...]
    tests: int
    seconds: float


def run(
    workspace: Workspace,
    tests: Sequence[str],
    *,
    deselected: Sequence[str] = (),
    limit: float,
    stop_at_first: bool = True,
    processes: int | None = None,
) -> Trials:
    """Run these tests; a run that takes longer than ``limit`` seconds counts as a failure."""
    processes = workspace.project.processes if processes is None else processes
    descriptor, name = tempfile.mkstemp(suffix=".jsonl", dir=workspace.reports)
    os.close(descriptor)
    command = [str(workspace.python), "-c", _PYTEST, "-q", "--no-header", "--tb=short"]
    command += ["-p", "no:cacheprovider", "-p", "mutants_witness", f"--timeout={_TEST_SECONDS}"]
    command += [*workspace.project.options, *["-x"] * stop_at_first]
    # Single tests instead of batches keep the given order.
    command += ["-n", str(processes), "--maxschedchunk=1"] if processes else []
    command += [f"--deselect={test}" for test in deselected]
    environment = workspace.environment | {"MUTANTS_REPORT": name}
    begun = time.monotonic()
    with (workspace.reports / "output.txt").open("w+", encoding="utf-8") as output:
        process = subprocess.Popen(
            [*command, *tests],
            cwd=workspace.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = _wait(process, workspace, Path(name), limit)
        finally:
            _end(process)
        output.seek(0)
        shown = output.read()
    return _verdict(Path(name), code, shown, time.monotonic() - begun)


def _wait(
    process: subprocess.Popen[bytes], workspace: Workspace, report: Path, limit: float
) -> int | None:
    """The exit code; None after a timeout or without progress."""
    until = time.monotonic() + limit
    while time.monotonic() < until and time.time() - report.stat().st_mtime < _SILENT_SECONDS:
        if workspace.stopped.is_set():
            raise Stopped
        with suppress(subprocess.TimeoutExpired):
            return process.wait(0.5)
    return None


def _verdict(report: Path, code: int | None, shown: str, seconds: float) -> Trials:
    records = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    report.unlink()
    failures = [
        Failure(record["test"], record["phase"], record["reason"], record["timeout"])
        for record in records
        if record["failed"]
    ]
    if code is None and not failures:
        failures = [Failure("", "run", f"The tests took more than {seconds:.0f} s", timeout=True)]
    elif code not in {None, _PASSED, _NOTHING} and not failures:
        raise TrialError(f"pytest ended with {code}:\n{shown[-3000:]}")
    ran = len({record["test"] for record in records if record["phase"] == "call"})
    return Trials(tuple(failures), ran, round(seconds, 1))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Stop pytest if it still runs; it may first stop its servers."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
    # Its processes of pytest-xdist, and itself if it ignored the signal.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
