"""Run programs on untrusted files: with limits, without secrets, outside the event loop."""

from __future__ import annotations

import asyncio
import json
import math
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from trunkline_profiles.clinical.handlers import launch
from trunkline_profiles.clinical.handlers.problems import CannotRun, StageProblem

__all__ = ["Ended", "Limits", "run"]

_MIB: Final = 1 << 20
_LAUNCH: Final = Path(launch.__file__)
# Number of characters of standard error to keep.
_TAIL: Final = 300
# Ignored once the program has started. Before that they can still end the launcher.
_FROM_OUTSIDE: Final = frozenset({signal.SIGHUP, signal.SIGINT, signal.SIGTERM})


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits for one run of a program."""

    # Seconds of CPU time. This is the main bound, because it does not depend on the machine's load.
    cpu: int = 120
    # Seconds of wall-clock time: for a program that waits. Generous, because a loaded machine is
    # slow for every document.
    wall: float = 600.0
    # MiB of address space.
    memory: int = 2048
    # Bytes of each file it writes, standard output included.
    output: int = 256 * _MIB

    def as_json(self) -> str:
        """Return the limits in the launcher's format."""
        return json.dumps(
            {
                "CPU": self.cpu,
                "AS": self.memory * _MIB,
                "FSIZE": self.output,
                "CORE": 0,
                "NOFILE": 64,
            }
        )


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended."""

    # None if it took too long; a negative value is a signal number.
    code: int | None
    printed: bytes
    complaint: str
    limits: Limits

    @property
    def over_limits(self) -> str | None:
        """The limit that ended the program; None if no limit did."""
        if self.code is None or self.code == -signal.SIGALRM:
            return f"{self.limits.wall:g} s"
        if self.code == -signal.SIGXCPU:
            return f"{self.limits.cpu} s of CPU time"
        if self.code == -signal.SIGXFSZ:
            return f"{self.limits.output} bytes of output"
        if self.code == -signal.SIGKILL:
            return f"{self.limits.memory} MiB of memory, or was killed"
        return None


async def run(
    command: Sequence[str | Path],
    *,
    folder: Path,
    limits: Limits,
    environment: Mapping[str, str],
    source: IO[bytes] | None = None,
) -> Ended:
    """Run a program until it ends or reaches a limit; it dies with the job.

    Raises CannotRun if it could not be started, which is not the document's fault.
    """
    launcher = [sys.executable, "-I", "-S", str(_LAUNCH), limits.as_json()]
    backstop = str(math.ceil(limits.wall) + 5)
    # Output goes to files, so that a document cannot make a program fill our memory. The limit on
    # file size applies to them.
    with tempfile.TemporaryFile() as printed, tempfile.TemporaryFile() as said:
        try:
            # A separate session, so that Ctrl-C in a terminal does not reach it. Descriptors of the
            # worker are closed by default.
            process = await asyncio.create_subprocess_exec(
                *launcher,
                backstop,
                *command,
                cwd=folder,
                stdin=asyncio.subprocess.DEVNULL if source is None else source,
                stdout=printed,
                stderr=said,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError as error:
            raise CannotRun(f"{Path(command[0]).name} cannot be started: {error}") from error
        late = False
        try:
            async with asyncio.timeout(limits.wall):
                await process.wait()
        except TimeoutError:
            late = True
        finally:
            # Includes the processes that it started.
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            code = await process.wait()
        complaint = _tail(said)
        if code == launch.FAILED and launch.PREFIX in complaint:
            raise CannotRun(f"{Path(command[0]).name} cannot be started: {complaint}")
        if -code in _FROM_OUTSIDE and not late:
            raise StageProblem(f"{Path(command[0]).name} was ended by signal {-code}")
        printed.seek(0)
        # Read one byte more than allowed, to detect that there is more.
        output = printed.read(limits.output + 1)
        return Ended(None if late else code, output, complaint, limits)


def _tail(stream: IO[bytes]) -> str:
    stream.seek(-min(stream.seek(0, os.SEEK_END), _TAIL), os.SEEK_END)
    return stream.read().decode(errors="replace").strip()
