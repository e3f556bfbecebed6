"""Enqueues of each version: one by one through the client and the function, and 1,000 at once.

No worker runs. The versions take turns of one bulk call, or of 50 single ones.
"""

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from math import isnan
from pathlib import Path

import psycopg

from bench import fill
from bench.figures import Figure
from bench.measures.enqueue import ENQUEUE
from bench.measures.enqueue_many import BATCH, JOBS, MANY, batch_arguments, many_arguments
from bench.place import TASK, Place
from bench.rivals.trunkline import open_trunkline
from bench.sides import cpu_seconds
from bench.sizes import Sizes
from bench.speed.pairs import NOW, Both, compare, in_order, processor_time, versions
from bench.worker.processes import Orders, producing

__all__ = ["run"]

# Single enqueues in one turn.
_CALLS = 50
_WARM_UP = 3


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; goals 0.97 one by one and 0.85 in bulk."""
    single, many = sizes.single_turns, sizes.repetitions * sizes.enqueue_calls
    job = {"task": TASK, "payload": '{"number": 1, "text": "twenty bytes of text"}'}
    with ExitStack() as stack:
        sides = _Functions(
            {
                of: stack.enter_context(fill.connect(stack.enter_context(its.database("enqueue"))))
                for of, its in versions(place).items()
            }
        )
        return [
            *compare("single_enqueue", "single enqueue, client", _client(place, single), goal=0.97),
            *sides.measure("enqueue", ENQUEUE, job, single, calls=_CALLS, goal=0.97),
            *sides.measure("enqueue_many", MANY, many_arguments(), many, jobs=JOBS, goal=0.85),
            *sides.measure("enqueue_batch", BATCH, batch_arguments(), many, jobs=JOBS, goal=0.85),
        ]


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


class _Functions:
    """A function of both versions, called on a connection to each."""

    def __init__(self, connections: Mapping[str, psycopg.Connection]) -> None:
        self._connections = connections
        for connection in connections.values():
            fill.checkpoint(connection)

    def measure(
        self,
        key: str,
        statement: str,
        arguments: Mapping[str, object],
        turns: int,
        *,
        goal: float,
        calls: int = 1,
        jobs: int = 1,
    ) -> list[Figure]:
        """Compare a statement that enqueues ``jobs`` jobs, in turns of ``calls`` calls."""

        spent: dict[str, list[float]] = {of: [] for of in self._connections}

        def turn(of: str) -> float:
            connection = self._connections[of]
            begin, cpu = time.perf_counter(), cpu_seconds(connection)
            for _ in range(calls):
                with connection.cursor(binary=True) as cursor:
                    answer = cursor.execute(statement.encode(), arguments).fetchall()
                if len(answer) != jobs:
                    raise RuntimeError(f"A call of {key} did not return every job")
            spent[of].append(cpu_seconds(connection) - cpu)
            return calls * jobs / (time.perf_counter() - begin)

        rates = _in_turns({of: partial(turn, of) for of in self._connections}, turns)
        figures = compare(key, f"{key}, {jobs:,} a call", rates, goal=goal)
        if not isnan(spent[NOW][0]):
            figures.append(processor_time(key, {of: cpu[_WARM_UP:] for of, cpu in spent.items()}))
        return figures


def _in_turns(calls: Mapping[str, Callable[[], float]], turns: int) -> Both:
    rates: dict[str, list[float]] = {of: [] for of in calls}
    for turn in range(_WARM_UP + turns):
        for of in in_order(list(calls), turn):
            rate = calls[of]()
            if turn >= _WARM_UP:
                rates[of].append(rate)
    return rates
