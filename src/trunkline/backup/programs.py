"""Find pg_dump and pg_restore, choose a version, and run them without exposing passwords."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trunkline.errors import BackupError, BackupFailed, BackupProgramsMissing, EmbeddedPlatform

__all__ = ["Process", "Program", "find", "running"]

_VERSION: Final = re.compile(r"\b(\d+)(?:\.|beta|rc|devel)")
# Number of characters of a program's messages to show; the last ones give the reason it ended.
_TAIL: Final = 4000


@dataclass(frozen=True, slots=True)
class Program:
    """A program of PostgreSQL and its major version."""

    path: Path
    major: int


class Process:
    """A running program and its end of the pipe."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def output(self) -> IO[bytes]:
        assert self._process.stdout is not None  # noqa: S101 - see running
        return self._process.stdout

    @property
    def input(self) -> IO[bytes]:
        assert self._process.stdin is not None  # noqa: S101 - see running
        return self._process.stdin


def find(name: str, *, server: int, at_least: int = 0) -> Program:
    """Return the program of the server's major version, or else the oldest newer one.

    A program cannot handle a server, or an archive, that is newer than itself.
    """
    programs: dict[int, Program] = {}
    for folder in _folders():
        path = folder / name
        if os.access(path, os.X_OK) and (major := _major(path)):
            programs.setdefault(major, Program(path, major))
    needed = max(server, at_least)
    fitting = sorted(major for major in programs if major >= needed)
    if fitting:
        return programs[fitting[0]]
    have = ", ".join(str(major) for major in sorted(programs)) or "none"
    raise BackupProgramsMissing(f"{name} {needed} or newer is needed; versions found: {have}")


def connection(dsn: str) -> tuple[str, dict[str, str]]:
    """Split a connection string into a part for the command line and environment variables.

    Every user of a machine can read command lines, so passwords go into the environment.
    """
    parameters = conninfo_to_dict(dsn)
    if parameters.get("sslpassword"):
        raise BackupError(
            "pg_dump and pg_restore take sslpassword on their command line only, which every user "
            "of this machine can read",
            hint="Use a client key without a pass phrase.",
        )
    environment = {**os.environ, "LC_ALL": "C"}
    password = parameters.pop("password", None)
    if password is not None:
        environment["PGPASSWORD"] = str(password)
    return make_conninfo("", **parameters), environment


@contextmanager
def running(
    program: Program, dsn: str, arguments: Sequence[str], *, reads: bool = False
) -> Iterator[Process]:
    """Run a program on a database; raises its failure when the block ends.

    Read its result from ``output``, or with ``reads`` write its data to ``input``.
    """
    target, environment = connection(dsn)
    with tempfile.TemporaryFile() as messages:
        process = subprocess.Popen(
            [program.path, *arguments, "--no-password", f"--dbname={target}"],
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if reads else subprocess.PIPE,
            stderr=messages,
            env=environment,
        )
        try:
            with contextlib.suppress(BrokenPipeError):
                # A program that failed stops reading; its messages give the reason.
                yield Process(process)
            with contextlib.suppress(BrokenPipeError):
                if process.stdin is not None:
                    process.stdin.close()
            code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()
        if code != 0:
            messages.seek(0)
            problem = messages.read().decode(errors="replace").strip()[-_TAIL:]
            raise BackupFailed(f"{program.path.name} failed: {problem}")


def _folders() -> Iterator[Path]:
    try:
        from trunkline.embedded import binaries  # noqa: PLC0415 - not importable everywhere

        yield from binaries.folders()
    except EmbeddedPlatform:
        pass
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if folder:
            yield Path(folder)


def _major(path: Path) -> int:
    try:
        output = subprocess.run(
            [path, "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = _VERSION.search(output)
    return int(match.group(1)) if match else 0
