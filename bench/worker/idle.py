"""An idle worker and a producer that enqueues one job at a time: how soon each job starts.

The commit has happened when the producer's call returns. A handler that starts earlier counts as a
negative time.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from bench.apps.slate import Slate
from bench.rivals.product import Contender
from bench.worker.processes import Orders, Watched, producing, wait_for, working

__all__ = ["WARM_UP", "Team", "Times", "assemble", "moments", "percentile", "times"]

WARM_UP = 10
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Team:
    """The started, idle processes of a contender."""

    contender: Contender
    worker: Watched
    producer: Orders
    slate: Slate
    jobs: int


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds until the handler started, job by job."""

    from_commit: list[float]
    from_call: list[float]


def assemble(
    contender: Contender,
    path: Path,
    jobs: int,
    stack: ExitStack,
    *,
    lenient: bool = False,
    between: Callable[[], object] = lambda: None,
) -> Team:
    """Start its processes and let them do one job, the last on the slate.

    ``between`` is called when its producer is connected and its worker is not.
    """
    slate = Slate.create(path, jobs + 1)
    contender.forget()
    producer = stack.enter_context(producing(contender, path))
    producer.do("singly", jobs, 1)
    between()
    worker = stack.enter_context(working(contender, path, lenient=lenient))
    wait_for(lambda: slate.counts[jobs] > 0, worker, seconds=_PATIENCE)
    return Team(contender, worker, producer, slate, jobs)


def moments(begin: int, interval: int, jitter: int, jobs: int) -> list[int]:
    """Return the times to enqueue at, irregular so that they do not align with any timer."""
    return [begin + at * interval + random.randint(-jitter, jitter) for at in range(jobs)]


def times(team: Team) -> Times:
    """Wait for the producer's reply and the last job; the first jobs do not count."""
    calls = team.producer.answer()
    wait_for(lambda: team.slate.unstarted == 0, team.worker, seconds=_PATIENCE)
    pairs = list(zip(team.slate.starts[: team.jobs], calls, strict=True))[WARM_UP:]
    return Times(
        from_commit=[(start - call[1]) / 1e6 for start, call in pairs],
        from_call=[(start - call[0]) / 1e6 for start, call in pairs],
    )


def percentile(values: Sequence[float], percent: int) -> float:
    """Return a percentile."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]
