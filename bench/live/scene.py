"""A database with running jobs, a server of the API, and clients in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psycopg

from bench.place import Place
from trunkline.operate import SyncOperator

__all__ = ["Clients", "api_server", "clients", "resident", "service_key"]


class Clients:
    """Open streams."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._input, self._output = _pipe(process.stdin), _pipe(process.stdout)

    def open(self, jobs: Sequence[str]) -> None:
        """Open a stream for each job, and wait until each has received the first event."""
        self._input.write("".join(f"{job}\n" for job in jobs))
        self._input.flush()
        line = self._output.readline()
        if line != "open\n":
            raise RuntimeError("the streams could not be opened")

    def latencies(self) -> list[float]:
        """Return the latencies since the last call, in seconds."""
        self._input.write("\n")
        self._input.flush()
        late: list[float] = json.loads(self._output.readline())
        return late


@contextmanager
def api_server(place: Place, dsn: str) -> Iterator[tuple[int, int]]:
    """Yield process id and port of a server."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.live.server", dsn],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | place.python_path,
    ) as process:
        try:
            yield process.pid, int(_pipe(process.stdout).readline())
        finally:
            process.kill()


@contextmanager
def clients(port: int, key: str, count: int) -> Iterator[Clients]:
    """Yield clients for so many streams."""
    with subprocess.Popen(
        [sys.executable, "-m", "bench.live.clients", str(port), key, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Clients(process)
        finally:
            process.kill()


def service_key(dsn: str) -> str:
    """Create a key with which the clients sign in; the server needs the roles to serve it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("grant trunkline_operator, trunkline_reader to current_user")
    with SyncOperator(dsn) as operator:
        return operator.keys.create("bench", "reader").key


def resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    pages = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        raise RuntimeError("the process was started without pipes")
    return pipe
