"""Enqueues of each version: one by one through the client and the function, and 1,000 at once.

Nobody works meanwhile. The versions take turns, call by call or by some dozen calls.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import psycopg

from bench import fill
from bench.figures import Figure
from bench.measures.enqueue import ENQUEUE
from bench.measures.enqueue_many import BATCH, JOBS, MANY, batch_arguments, many_arguments
from bench.place import TASK, Place
from bench.rivals.trunkline import open_trunkline
from bench.sizes import Sizes
from bench.speed.pairs import Both, compare, in_order, versions
from bench.worker.processes import Orders, producing

__all__ = ["run"]

# Calls of the client in one turn, and of the function.
_CALLS = 50
_WARM_UP = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 0.97 one by one and 0.85 in bulk."""
    single, many = sizes.single_turns, sizes.repetitions * sizes.enqueue_calls
    with ExitStack() as stack:
        connections = {
            of: stack.enter_context(fill.connect(stack.enter_context(its.database("enqueue"))))
            for of, its in versions(place).items()
        }
        for connection in connections.values():
            fill.checkpoint(connection)
        arguments = {"task": TASK, "payload": '{"number": 1, "text": "twenty bytes of text"}'}
        return [
            *_compare("single_enqueue", "single enqueue, client", _client(place, single), 0.97),
            *_compare(
                "enqueue",
                "enqueue",
                _function(connections, ENQUEUE, arguments, single, calls=_CALLS),
                0.97,
            ),
            *_compare(
                "enqueue_many",
                "enqueue_many of 1,000",
                _function(connections, MANY, many_arguments(), many, jobs=JOBS),
                0.85,
            ),
            *_compare(
                "enqueue_batch",
                "enqueue_batch of 1,000",
                _function(connections, BATCH, batch_arguments(), many, jobs=JOBS),
                0.85,
            ),
        ]


def _compare(key: str, text: str, rates: Both, goal: float) -> list[Figure]:
    return compare(key, text, rates, goal=goal)


def _client(place: Place, turns: int) -> Both:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="trunkline-bench-")))
        producers: dict[str, Orders] = {}
        for of, its in versions(place).items():
            contender = stack.enter_context(open_trunkline(its, key="single"))
            producers[of] = stack.enter_context(producing(contender, folder / "slate"))
        return _in_turns(
            {of: partial(_singly, producer) for of, producer in producers.items()}, turns
        )


def _singly(producer: Orders) -> float:
    return _CALLS / float(producer.do("singly", 0, _CALLS))


def _function(
    connections: Mapping[str, psycopg.Connection],
    statement: str,
    arguments: Mapping[str, object],
    turns: int,
    *,
    calls: int = 1,
    jobs: int = 1,
) -> Both:
    """Give the jobs per second of a statement that enqueues so many."""

    def turn(cursor: psycopg.Cursor) -> float:
        begin = time.perf_counter()
        for _ in range(calls):
            if len(cursor.execute(statement.encode(), arguments).fetchall()) != jobs:
                raise RuntimeError("A call did not answer with every job")
        return calls * jobs / (time.perf_counter() - begin)

    return _in_turns(
        {of: partial(turn, each.cursor(binary=True)) for of, each in connections.items()}, turns
    )


def _in_turns(calls: Mapping[str, Callable[[], float]], turns: int) -> Both:
    rates: dict[str, list[float]] = {of: [] for of in calls}
    for turn in range(_WARM_UP + turns):
        for of in in_order(list(calls), turn):
            rate = calls[of]()
            if turn >= _WARM_UP:
                rates[of].append(rate)
    return rates
