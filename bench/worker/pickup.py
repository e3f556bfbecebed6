"""How soon an idle worker starts a job, from the commit of its enqueue.

Every contender has an idle worker and a producer that enqueues a job about every 50 ms. All run in
the same minute, shifted against each other so that no two are active at once.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.figures import Figure
from bench.rivals.product import Contender, PostgresContender
from bench.sides import other_backends, process_cpu_seconds
from bench.sizes import Sizes
from bench.worker.idle import WARM_UP, Times, assemble, moments, percentile, times
from bench.worker.stage import Stage

__all__ = ["run"]

_INTERVAL = 50_000_000
# Less than half of the shift, so that turns do not overlap.
_JITTER = 8_000_000
_HEAD_START = 500_000_000


@dataclass(frozen=True, slots=True)
class _Seen:
    times: Times
    # Microseconds of processor time per job, of the worker and of its server processes.
    worker_cpu: float
    server_cpu: float


def run(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Measure; goal: the median not above the rival's, 99 of 100 below 20 ms."""
    contenders = stage.contenders[:2]
    seen = _measure(stage, contenders, sizes.pickup_jobs + WARM_UP)
    figures = []
    for contender in contenders:
        goal = 20.0 if contender is stage.ours else None
        figures += _describe(contender, seen[contender.key], goal)
    if stage.rivals:
        mine, theirs = (percentile(seen[each.key].times.from_commit, 50) for each in contenders)
        figures.append(
            Figure(
                f"pickup_p50_vs_{contenders[1].key}",
                mine / theirs,
                f"median over {contenders[1].name}",
                goal=1.0,
                better="at most",
            )
        )
    return figures


def _measure(stage: Stage, contenders: Sequence[PostgresContender], jobs: int) -> dict[str, _Seen]:
    with ExitStack() as stack:
        sides = [_Side(contender, stage, jobs, stack) for contender in contenders]
        begin = time.monotonic_ns() + _HEAD_START
        for number, side in enumerate(sides):
            shifted = begin + number * _INTERVAL // len(sides)
            side.team.producer.send("at", moments(shifted, _INTERVAL, _JITTER, jobs))
        return {side.team.contender.key: side.seen() for side in sides}


class _Side:
    """A team, and the processor time it had used when it was ready."""

    def __init__(
        self, contender: PostgresContender, stage: Stage, jobs: int, stack: ExitStack
    ) -> None:
        self._connection = contender.connection
        self._others: set[int] = set()
        path = stage.folder / contender.key
        self.team = assemble(contender, path, jobs, stack, between=self._leave_out_the_producer)
        self._before = self._cpu()

    def seen(self) -> _Seen:
        """Wait for the last job."""
        delays = times(self.team)
        worker, server = (
            (after - before) / self.team.jobs * 1e6
            for after, before in zip(self._cpu(), self._before, strict=True)
        )
        return _Seen(delays, worker, server)

    def _leave_out_the_producer(self) -> None:
        self._others = set(other_backends(self._connection))

    def _cpu(self) -> tuple[float, float]:
        """Processor seconds so far: of the worker, and of its server processes."""
        backends = set(other_backends(self._connection)) - self._others
        return self.team.worker.cpu_seconds, sum(process_cpu_seconds(pid) for pid in backends)


def _describe(contender: Contender, seen: _Seen, goal: float | None) -> list[Figure]:
    key, name, jobs = contender.key, contender.name, len(seen.times.from_commit)
    figures = [
        Figure(
            f"pickup_{key}_p{percent}",
            percentile(seen.times.from_commit, percent),
            f"{name}: commit to handler, p{percent} of {jobs}",
            "ms",
            goal=goal if percent == 99 else None,
            better="at most",
        )
        for percent in (50, 95, 99)
    ]
    figures += [
        Figure(
            f"pickup_{key}_call_p{percent}",
            percentile(seen.times.from_call, percent),
            f"  the same from before the call, p{percent}",
            "ms",
        )
        for percent in (50, 99)
    ]
    figures += [
        Figure(f"pickup_{key}_worker_cpu", seen.worker_cpu, "  processor, worker", "us/job"),
        Figure(f"pickup_{key}_server_cpu", seen.server_cpu, "  processor, server", "us/job"),
    ]
    return figures
