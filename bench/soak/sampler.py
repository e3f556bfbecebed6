"""Samples the server each second: dead rows, sizes, processor time."""

import math
import os
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from bench.cpu import cpu_seconds, family
from bench.internals.tables import SOAK_TABLES
from bench.rivals.product import PostgresContender
from bench.soak.beside import beside
from bench.worker.processes import Watched

__all__ = ["TABLES", "Sample", "Sampler"]

TABLES = ("waiting", "running", "finished")

_EVERY = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample; its time is in nanoseconds of the monotonic clock, by table in rows and bytes."""

    at: int
    dead: dict[str, int]
    table_bytes: dict[str, int]
    index_bytes: dict[str, int]
    vacuums: int
    # Processor seconds so far; NaN for a server on another machine.
    worker_cpu: float
    server_cpu: float
    # Of the rest of the machine: other programs, including neighbours of a virtual machine.
    other_cpu: float


class Sampler:
    """Takes samples in a thread, on its own connection."""

    def __init__(self, contender: PostgresContender, worker: Watched) -> None:
        self._dsn = contender.dsn
        self._server = contender.server_pids()
        self._worker = worker
        self.samples: list[Sample] = []

    def watching(self) -> AbstractContextManager[None]:
        """Take samples while the block runs."""
        return beside(self._watch)

    def _watch(self, stop: threading.Event) -> None:
        with psycopg.connect(self._dsn, autocommit=True, prepare_threshold=0) as connection:
            begin = time.monotonic()
            while not stop.wait(max(0.0, begin - time.monotonic())):
                self.samples.append(self._look(connection))
                begin += _EVERY

    def _look(self, connection: psycopg.Connection) -> Sample:
        rows = connection.execute(SOAK_TABLES, (list(TABLES),)).fetchall()
        # A server that we started may be our child, or may have detached.
        us = family([os.getpid()])
        ours = [os.getpid(), *(pid for pid in self._server if pid not in us)]
        return Sample(
            at=time.monotonic_ns(),
            dead={row[0]: row[1] for row in rows},
            table_bytes={row[0]: row[2] for row in rows},
            index_bytes={row[0]: row[3] for row in rows},
            vacuums=sum(row[4] for row in rows),
            worker_cpu=self._worker.cpu_seconds,
            server_cpu=cpu_seconds(self._server) if self._server else math.nan,
            other_cpu=_machine_cpu() - cpu_seconds(ours) if self._server else math.nan,
        )


def _machine_cpu() -> float:
    """Busy seconds of all processors so far."""
    fields = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _waiting, *rest = (int(field) for field in fields)
    return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK")
