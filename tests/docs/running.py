"""Runs a page: its files, Python, console and SQL blocks in their order, in one folder."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tests.docs.pages import Block
from tests.docs.transcript import agrees, commands

_DRIVER = Path(__file__).with_name("driver.py")
_BINARIES = Path(sys.executable).parent
# Of one command or block; a page that waits longer for something has lost it.
_PATIENCE = 300.0
# Commands that change nothing, and how long they are repeated until they show what the page says.
_LOOK = re.compile(r"trunkline \w+ (?:list|show)\b")
_LOOKING = 180.0
# Bash tells that a job it started was killed; an interactive one says it in other words.
_KILLED = re.compile(r"^\S*bash: line \d+: +\d+ Killed .*\n?", re.MULTILINE)


class Failed(AssertionError):
    """A block did not do what the page says."""

    def __init__(self, block: Block, what: str) -> None:
        super().__init__(f"{block.place}: {what}")


class Session:
    """One reader of one page: a folder, a shell and an interpreter."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], *, patience: float = _PATIENCE
    ) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.patience = patience
        self._shell: _Shell | None = None
        self._python: _Python | None = None
        self._output = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._python is not None:
            self._python.close()
        if self._shell is not None:
            self._shell.close()

    def do(self, block: Block) -> None:
        """Do what a reader would do with the block, and compare what the page shows."""
        try:
            if block.skip is None:
                self._do(block)
        except AssertionError as error:
            for log in sorted(self.folder.glob("*.log")):
                error.add_note(f"{log.name}:\n{log.read_text(encoding='utf-8')}")
            raise

    def _do(self, block: Block) -> None:
        if block.file is not None:
            path = self.folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif "output" in block.directives:
            if not agrees(block.text.splitlines(), self._output):
                raise Failed(block, f"the block before printed\n{self._output}")
        elif block.language == "python":
            self._output = self._run_python(block)
        elif block.language == "console":
            self._run_console(block)
        elif block.language == "sql":
            self._output = self._run_sql(block)

    def _run_python(self, block: Block) -> str:
        if self._python is None:
            self._python = _Python(self.folder, self.environment)
        output, trace = self._python.run(block.text, block.place)
        if trace:
            raise Failed(block, trace)
        return output

    def _run_console(self, block: Block) -> None:
        if self._shell is None:
            self._shell = _Shell(self.folder, self.environment)
        typed = commands(block.text)
        for command in typed:
            wanted = int(block.directives.get("exit", "0")) if command is typed[-1] else 0
            deadline = time.monotonic() + _LOOKING
            output, code = self._shell.run(command.text, self.patience)
            # What another process does shows a moment later; a reader looks again, and so do we.
            while (
                command.shown
                and _LOOK.match(command.text)
                and not agrees(command.shown, output)
                and time.monotonic() < deadline
            ):
                output, code = self._shell.run(command.text, self.patience)
            if code != wanted:
                raise Failed(block, f"$ {command.text}\nexit code {code}\n{output}")
            if command.shown and not agrees(command.shown, output):
                raise Failed(block, f"$ {command.text}\nprinted\n{output}")

    def _run_sql(self, block: Block) -> str:
        done = subprocess.run(
            ["psql", self.environment["TRUNKLINE_DSN"], "-Xq", "-v", "ON_ERROR_STOP=1"],  # noqa: S607
            input=block.text,
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        if done.returncode != int(block.directives.get("exit", "0")):
            raise Failed(block, done.stdout + done.stderr)
        return done.stdout


class _Python:
    """An interpreter that keeps its names from block to block."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        reading, writing = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, str(_DRIVER), str(writing)],
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[writing],
            text=True,
        )
        os.close(writing)
        self._answers = os.fdopen(reading, "rb", buffering=0)

    def run(self, text: str, place: str) -> tuple[str, str]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"text": text, "place": place}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(_read_until(self._answers, b"\n"))
        return answer["output"], answer["trace"]

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._answers.close()


class _Shell:
    """A bash that keeps its variables and its jobs from command to command."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],  # noqa: S607 - bash of this machine
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            start_new_session=True,
        )
        self._late = ""
        # Jobs in process groups of their own, as in a terminal: %1 means all of it.
        self.run("set -m")

    def run(self, command: str, patience: float = _PATIENCE) -> tuple[str, int]:
        """Run one command and return what it printed, and its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        mark = f"---{uuid.uuid4().hex}"
        # Its input is empty, or it would take the commands after it.
        script = f"{{\n{command}\n}} </dev/null\nprintf '%s %d\\n' {mark} $?\n"
        self._process.stdin.write(script.encode())
        text = _read_until(self._process.stdout, b"\n", after=mark.encode(), patience=patience)
        output, _, rest = text.partition(mark)
        # A job that dies between the command and its mark is named after the mark, or half of
        # that: what came late belongs to what the next command prints.
        code, _, late = rest.partition("\n")
        output, self._late = self._late + output, late
        return _KILLED.sub("", output), int(code)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # By their session, since a shell that waits for the end of a command does nothing else.
        for process in _processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                if os.getsid(process) == self._process.pid:
                    os.kill(process, signal.SIGKILL)
        self._process.wait(10)
        self._process.stdin.close()
        self._process.stdout.close()


def _processes() -> list[int]:
    listed = subprocess.run(
        ["ps", "-e", "-o", "pid="],  # noqa: S607 - ps of this machine
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(line) for line in listed.stdout.split()]


def environment(*, home: Path, dsn: str | None, binaries: Path = _BINARIES) -> dict[str, str]:
    """What a reader's shell has: the programs, a folder for the embedded server, perhaps a DSN."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRUNKLINE_", "PYTEST_", "PYTHON", "PG", "VIRTUAL_ENV"))
    }
    folders = [one for one in os.environ["PATH"].split(os.pathsep) if Path(one) != _BINARIES]
    made = kept | {
        "PATH": os.pathsep.join([str(binaries), *folders]),
        "TRUNKLINE_HOME": str(home),
        "COLUMNS": "100",
        "PGTZ": "UTC",
        "TZ": "UTC",
    }
    return made | ({"TRUNKLINE_DSN": dsn} if dsn else {})


def _read_until(
    stream: IO[bytes], end: bytes, *, after: bytes = b"", patience: float = _PATIENCE
) -> str:
    """Read up to the first `end` that comes after `after`."""
    deadline = time.monotonic() + patience
    found = b""
    while True:
        start = found.find(after)
        if start >= 0 and end in found[start:]:
            return found.decode()
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"not within {patience} s; so far:\n{found.decode()}")
        chunk = os.read(stream.fileno(), 65536)
        if not chunk:
            raise AssertionError(f"ended; so far:\n{found.decode()}")
        found += chunk
