"""How long each view, function and command takes while millions of jobs wait.

Commands run in this process, so that the start of Python is not part of it. The second of three
looks counts as the median: what nobody has read since the start of the server comes from the disk.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from uuid import UUID

import psycopg
from click.testing import CliRunner

from bench.backlog import reads, stock
from bench.backlog.sizes import BacklogSizes
from bench.figures import Figure
from bench.fill import checkpoint
from bench.place import Place
from bench.sizes import Sizes
from trunkline.cli.main import cli

__all__ = ["run"]

_GOAL = 0.5
# These compare the whole schema with the shipped one, or take the steps of a check-list, however
# many jobs there are.
_GOALS = dict.fromkeys(
    ("trunkline doctor", "trunkline profile check clinical", "trunkline schema verify"), 2.0
)
_LOOKS = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Fill a database and read it; goal: an answer within half a second."""
    with place.database("backlog") as dsn:
        stock.install_profiles(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            begin = time.monotonic()
            _fill(connection, sizes.backlog_reads)
            yielded = [Figure("filled_seconds", time.monotonic() - begin, "filling", "s")]
            for key, seconds in _timed(connection, dsn):
                goal = _GOALS.get(key, _GOAL)
                yielded.append(Figure(key, seconds, key, "s", goal=goal, better="at most"))
                print(yielded[-1].line, flush=True)
    return yielded


def _fill(connection: psycopg.Connection, sizes: BacklogSizes) -> None:
    stock.fill(connection, waiting=sizes.waiting, finished=sizes.finished, dead=sizes.dead)
    for table in ("waiting", "running", "finished", "dead", "events"):
        connection.execute(f"vacuum analyze trunkline_internal.{table}".encode())
    checkpoint(connection)


def _timed(connection: psycopg.Connection, dsn: str) -> Iterator[tuple[str, float]]:
    subjects = reads.subjects(connection)
    for name, query in reads.queries(connection).items():
        yield name, _median(partial(_read, connection, query, subjects))
    runner = CliRunner(env={"TRUNKLINE_DSN": dsn})
    for command in reads.commands():
        words = (command % subjects).split()
        yield f"trunkline {command}", _median(partial(_call, runner, words))


def _read(connection: psycopg.Connection, query: str, subjects: Mapping[str, UUID]) -> None:
    connection.execute(f"select * from {query}".encode(), subjects).fetchall()


def _call(runner: CliRunner, words: Sequence[str]) -> None:
    result = runner.invoke(cli, words)
    # Checks end with 1 when they find something.
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


def _median(look: Callable[[], object]) -> float:
    taken = []
    for _ in range(_LOOKS):
        begin = time.monotonic()
        look()
        taken.append(time.monotonic() - begin)
    return statistics.median(taken)
