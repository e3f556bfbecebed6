"""Claim on one connection while completing on another, as a worker does, in each form.

One process. Forms, loops and batch sizes take turns, in a new order each round. They share a queue
and its position, so none of them scans dead rows that another left.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from statistics import median

import uvloop

from bench import fill
from bench.drivers.forms import FORMS, QUEUE, Batch, Form
from bench.figures import Figure
from bench.place import Place
from bench.sides import process_cpu_seconds
from bench.sizes import Sizes

__all__ = ["run"]

_BATCHES = (100, 500)
_LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
# Batches between the claimer and the completer.
_AHEAD = 2


@dataclass(frozen=True, slots=True)
class _Turn:
    rate: float
    client: float
    claim: float
    complete: float


@dataclass(slots=True)
class _Place:
    position: str = "{}"


def run(place: Place, sizes: Sizes) -> list[Figure]:
    """Measure; there is no goal."""
    cases = list(product(FORMS, _LOOPS, _BATCHES))
    turns: dict[tuple[str, str, int], list[_Turn]] = {case: [] for case in cases}
    with place.database("drivers") as dsn, ExitStack() as stack:
        with fill.connect(dsn) as connection:
            # A turn may claim up to three batches more than it needs.
            jobs = sizes.driver_jobs + 3 * max(_BATCHES)
            fill.ready(connection, len(cases) * (sizes.driver_turns + 1) * jobs, queue=QUEUE)
            fill.analyze(connection)
            fill.checkpoint(connection)
        runners = {
            name: stack.enter_context(asyncio.Runner(loop_factory=factory))
            for name, factory in _LOOPS.items()
        }
        forms: dict[tuple[str, str], Form] = {}
        for form, loop in product(FORMS, _LOOPS):
            forms[form, loop] = FORMS[form][1]()
            runners[loop].run(forms[form, loop].open(dsn))
        shared = _Place()
        for number in range(sizes.driver_turns + 1):
            random.shuffle(cases)
            for form, loop, batch in cases:
                turn = _take(runners[loop], forms[form, loop], shared, sizes.driver_jobs, batch)
                # The first round warms up.
                if number:
                    turns[form, loop, batch].append(turn)
        for (_, loop), opened in forms.items():
            runners[loop].run(opened.close())
    return [figure for case, taken in turns.items() for figure in _describe(*case, taken)]


def _take(runner: asyncio.Runner, form: Form, shared: _Place, jobs: int, batch: int) -> _Turn:
    before = [process_cpu_seconds(backend) for backend in form.backends]
    cpu, begin = time.process_time(), time.perf_counter()
    done = runner.run(_work(form, shared, jobs, batch))
    seconds, client = time.perf_counter() - begin, time.process_time() - cpu
    claim, complete = (
        (process_cpu_seconds(backend) - earlier) / done * 1e6
        for backend, earlier in zip(form.backends, before, strict=True)
    )
    return _Turn(done / seconds, client / done * 1e6, claim, complete)


async def _work(form: Form, shared: _Place, jobs: int, limit: int) -> int:
    between: asyncio.Queue[Batch | None] = asyncio.Queue(_AHEAD)

    async def claim() -> int:
        claimed = 0
        while claimed < jobs:
            batch = await form.claim(limit, shared.position)
            if not batch.jobs:
                raise RuntimeError("The backlog for the drivers is too small")
            shared.position = batch.position or shared.position
            claimed += len(batch.jobs)
            await between.put(batch)
        await between.put(None)
        return claimed

    async def complete() -> None:
        while (batch := await between.get()) is not None:
            await form.complete(batch)

    done, _ = await asyncio.gather(claim(), complete())
    return done


def _describe(form: str, loop: str, batch: int, turns: list[_Turn]) -> list[Figure]:
    key = f"hot_path_{form}_{loop}_{batch}"
    name = f"{FORMS[form][0]}, {loop}, {batch}"
    return [
        Figure(key, median(turn.rate for turn in turns), name, "jobs/s"),
        Figure(f"{key}_cpu", median(turn.client for turn in turns), "  client", "us/job"),
        Figure(f"{key}_claim", median(turn.claim for turn in turns), "  server, claim", "us/job"),
        Figure(
            f"{key}_complete",
            median(turn.complete for turn in turns),
            "  server, complete",
            "us/job",
        ),
    ]
