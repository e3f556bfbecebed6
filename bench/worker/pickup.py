"""How soon an idle worker starts a job, from the commit of its enqueue.

Every contender has an idle worker and a producer that enqueues a job about every 50 ms, all in the
same minute, shifted against each other so that no two are at work at once. The commit has happened
when the producer's call returns; a handler that starts before that counts with a negative time.
"""

import random
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import quantiles

from bench import fill
from bench.apps.slate import Slate
from bench.figures import Figure
from bench.sides import other_backends, process_cpu_seconds
from bench.sizes import Sizes
from bench.worker.contender import Contender
from bench.worker.processes import Orders, Watched, producing, wait_for, working
from bench.worker.stage import Stage

__all__ = ["run"]

_INTERVAL = 50_000_000
# Less than half of the shift, so that turns keep apart, and enough to meet no timer in step.
_JITTER = 8_000_000
_HEAD_START = 500_000_000
_WARM_UP = 10
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class _Team:
    contender: Contender
    worker: Watched
    producer: Orders
    producer_backends: set[int]
    slate: Slate
    jobs: int


@dataclass(frozen=True, slots=True)
class _Times:
    """Milliseconds to the start of the handler, job by job."""

    from_commit: list[float]
    from_call: list[float]
    # Microseconds of processor time a job, of the worker and of the server for it.
    worker_cpu: float
    server_cpu: float


def run(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Measure; goal: the median not above the rival's, 99 of 100 below 20 ms."""
    contenders = stage.contenders[:2]
    times = _measure(stage, contenders, sizes.pickup_jobs + _WARM_UP)
    figures = []
    for contender in contenders:
        goal = 20.0 if contender is stage.ours else None
        figures += _describe(contender, times[contender.key], goal)
    if stage.rivals:
        mine, theirs = (_percentile(times[each.key].from_commit, 50) for each in contenders)
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


def _measure(stage: Stage, contenders: Sequence[Contender], jobs: int) -> dict[str, _Times]:
    with ExitStack() as stack:
        teams = {each.key: _assemble(stage, each, jobs, stack) for each in contenders}
        before = {key: _cpu(team) for key, team in teams.items()}
        begin = time.monotonic_ns() + _HEAD_START
        for number, team in enumerate(teams.values()):
            shifted = begin + number * _INTERVAL // len(teams)
            team.producer.send("at", [shifted + at * _INTERVAL + _jitter() for at in range(jobs)])
        return {key: _times(team, *before[key]) for key, team in teams.items()}


def _assemble(stage: Stage, contender: Contender, jobs: int, stack: ExitStack) -> _Team:
    """Start its processes and let them do one job, the last on the slate."""
    path, slate = stage.slate(jobs + 1, contender.key)
    with fill.connect(contender.dsn) as connection:
        connection.execute(contender.forget, prepare=False)
        connection.execute("vacuum analyze", prepare=False)
    producer = stack.enter_context(producing(contender, path))
    producer.do("singly", jobs, 1)
    # Nobody else is connected yet.
    backends = set(_backends(contender))
    worker = stack.enter_context(working(contender, path))
    wait_for(lambda: slate.counts[jobs] > 0, worker, seconds=_PATIENCE)
    return _Team(contender, worker, producer, backends, slate, jobs)


def _times(team: _Team, worker_cpu: float, server_cpu: float) -> _Times:
    calls = team.producer.answer()
    wait_for(lambda: team.slate.unstarted == 0, team.worker, seconds=_PATIENCE)
    worker_cpu_after, server_cpu_after = _cpu(team)
    starts = team.slate.starts[: team.jobs]
    return _Times(
        from_commit=[(s - c[1]) / 1e6 for s, c in zip(starts, calls, strict=True)][_WARM_UP:],
        from_call=[(s - c[0]) / 1e6 for s, c in zip(starts, calls, strict=True)][_WARM_UP:],
        worker_cpu=(worker_cpu_after - worker_cpu) / team.jobs * 1e6,
        server_cpu=(server_cpu_after - server_cpu) / team.jobs * 1e6,
    )


def _cpu(team: _Team) -> tuple[float, float]:
    """Processor seconds so far: of the worker, and of the server processes that serve it."""
    backends = set(_backends(team.contender)) - team.producer_backends
    return team.worker.cpu_seconds, sum(process_cpu_seconds(pid) for pid in backends)


def _backends(contender: Contender) -> list[int]:
    with fill.connect(contender.dsn) as connection:
        return other_backends(connection)


def _describe(contender: Contender, times: _Times, goal: float | None) -> list[Figure]:
    key, name, jobs = contender.key, contender.name, len(times.from_commit)
    figures = [
        Figure(
            f"pickup_{key}_p{percent}",
            _percentile(times.from_commit, percent),
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
            _percentile(times.from_call, percent),
            f"  the same from before the call, p{percent}",
            "ms",
        )
        for percent in (50, 99)
    ]
    figures += [
        Figure(f"pickup_{key}_worker_cpu", times.worker_cpu, "  processor, worker", "us/job"),
        Figure(f"pickup_{key}_server_cpu", times.server_cpu, "  processor, server", "us/job"),
    ]
    return figures


def _percentile(values: Sequence[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def _jitter() -> int:
    return random.randint(-_JITTER, _JITTER)
