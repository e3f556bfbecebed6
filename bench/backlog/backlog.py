"""How long each view, function and command takes while millions of jobs wait.

Commands run in this process, so the start of Python is not included. Each runs three times and the
median counts, because pages that were not read since the server started come from disk.
"""

import contextlib
import io
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from unittest import mock
from uuid import UUID

import psycopg

from bench.backlog import reads
from bench.backlog.sizes import BacklogSizes
from bench.figures import Figure
from bench.fill import analyze, checkpoint
from bench.internals import stock
from bench.place import Place
from bench.sizes import Sizes
from trunkline.cli.main import cli

__all__ = ["run"]

_GOAL = 0.5
# The doctor prints each finding as soon as it has it. Its first line concerns only this machine, so
# the second is the server's first response. The complete output has a separate goal.
_FIRST_LINE = {"doctor": 2}
_WHOLE_GOALS = {"doctor": 2.0}
# The first page of a list by tag, correlation id or time, as a function and as a whole command.
_PAGE_GOAL = 0.05
_RUNS = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Fill a database and read it; goal: a response within half a second."""
    figures = []
    with place.database("backlog") as dsn:
        stock.install_profiles(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            begin = time.monotonic()
            _fill(connection, sizes.backlog_reads)
            figures.append(Figure("filled_seconds", time.monotonic() - begin, "filling", "s"))
            for key, seconds, goal in _timed(connection, dsn):
                figures.append(Figure(key, seconds, key, "s", goal=goal, better="at most"))
                print(figures[-1].line, flush=True)
    return figures


def _fill(connection: psycopg.Connection, sizes: BacklogSizes) -> None:
    stock.fill(
        connection,
        waiting=sizes.waiting,
        set_aside=sizes.set_aside,
        finished=sizes.finished,
        dead=sizes.dead,
    )
    analyze(connection)
    checkpoint(connection)


def _timed(connection: psycopg.Connection, dsn: str) -> Iterator[tuple[str, float, float]]:
    subjects = reads.subjects(connection)
    for name, query in reads.queries(connection).items():
        goal = _PAGE_GOAL if name in reads.FIRST_PAGE_CALLS else _GOAL
        yield name, _median(partial(_read, connection, query, subjects))[0], goal
    with mock.patch.dict(os.environ, {"TRUNKLINE_DSN": dsn}):
        for command in reads.commands():
            words = (command % subjects).split()
            first, whole = _median(partial(_call, words, _FIRST_LINE.get(command, 1)))
            yield f"trunkline {command}", first, _GOAL
            if command in _WHOLE_GOALS:
                yield f"trunkline {command}, to the end", whole, _WHOLE_GOALS[command]


def _read(
    connection: psycopg.Connection, query: str, subjects: Mapping[str, UUID]
) -> tuple[float, float]:
    begin = time.monotonic()
    connection.execute(f"select * from {query}".encode(), subjects).fetchall()
    took = time.monotonic() - begin
    return took, took


class _Output(io.StringIO):
    """Standard output that records when each line began."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self._wanted = line
        self._lines = 0
        self.at: float | None = None

    def write(self, text: str) -> int:
        if self.at is None and text and self._lines + 1 >= self._wanted:
            self.at = time.monotonic()
        self._lines += text.count("\n")
        return super().write(text)


def _call(words: Sequence[str], line: int) -> tuple[float, float]:
    """Seconds until a command began a line of its output, and until it ended."""
    output = _Output(line)
    begin = time.monotonic()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(io.StringIO()):
        cli.main(words, standalone_mode=False)
    end = time.monotonic()
    return (output.at or end) - begin, end - begin


def _median(timing: Callable[[], tuple[float, float]]) -> tuple[float, float]:
    taken = [timing() for _ in range(_RUNS)]
    return (
        statistics.median(first for first, _ in taken),
        statistics.median(whole for _, whole in taken),
    )
