"""How fast worker processes empty a backlog, and what that costs.

The clock runs from the start of the first handler until another connection finds the backlog empty.
That connection starts to check when every handler has started, so it adds no load before.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bench.apps.slate import WORK_VARIABLE, Slate
from bench.contest.scene import Entrant, Failed, Scene
from bench.cpu import cpu_seconds
from bench.worker.processes import Watched, producing, wait_for, working

__all__ = ["measure_drain", "run"]


@dataclass(frozen=True, slots=True)
class _Books:
    """Processor seconds used so far; None where they are unknown."""

    moment: int
    client: float
    server: float | None

    @property
    def both(self) -> float | None:
        return None if self.server is None else self.client + self.server


@dataclass(frozen=True, slots=True)
class _Drain:
    jobs: int
    seconds: float
    # From the start of the processes; includes jobs claimed before the first handler started.
    seconds_from_start: float
    before: _Books
    first: _Books
    last: _Books
    log: int | None
    dead: int | None


def run(scene: Scene) -> None:
    """Measure one repetition: jobs that do nothing, with one process and with two."""
    for processes in (1, 2):
        measure_drain(scene, f"drain_{processes}", processes=processes, costs=processes == 1)


def measure_drain(
    scene: Scene,
    measure: str,
    *,
    processes: int = 1,
    share: int = 1,
    work: float = 0.0,
    costs: bool = False,
) -> None:
    """Let every product drain once and record the figures; ``share`` divides the number of jobs."""
    for entrant in scene.runners(measure):
        with scene.turn(entrant, measure):
            jobs = max(scene.sizes.jobs(entrant.product) // share, 1)
            drain = _drain(scene, entrant, jobs, processes, work)
            _note_speed(scene, measure, entrant, drain)
            if costs:
                _note_costs(scene, entrant, drain)


def _drain(scene: Scene, entrant: Entrant, jobs: int, processes: int, work: float) -> _Drain:
    contender, path = entrant.contender, scene.folder / "slate"
    slate = Slate.create(path, jobs)
    contender.forget()
    with producing(contender, path) as producer:
        producer.do("fill", 0, jobs)
    contender.settle()
    log, dead = contender.log_position(), contender.dead_tuples()
    roots = contender.server_pids()

    def books(worker: Watched) -> _Books:
        server = cpu_seconds(roots) if roots else None
        return _Books(time.monotonic_ns(), worker.cpu_seconds, server)

    variables = {WORK_VARIABLE: str(work)}
    with working(contender, path, processes=processes, variables=variables, lenient=True) as worker:
        before = books(worker)
        _wait_for_handlers(scene, entrant, worker, slate, lambda: slate.unstarted < jobs)
        first = books(worker)
        _wait_for_handlers(scene, entrant, worker, slate, lambda: slate.unstarted == 0)
        wait_for(contender.is_empty, worker, seconds=scene.sizes.turn_seconds)
        end = time.monotonic_ns()
        last, log_after = books(worker), contender.log_position()
    _check(scene, entrant, slate)
    dead_after = contender.dead_tuples()
    return _Drain(
        jobs=jobs,
        seconds=(end - min(slate.starts)) / 1e9,
        seconds_from_start=(end - worker.started) / 1e9,
        before=before,
        first=first,
        last=last,
        log=None if log is None or log_after is None else log_after - log,
        dead=None if dead is None or dead_after is None else dead_after - dead,
    )


def _wait_for_handlers(
    scene: Scene, entrant: Entrant, worker: Watched, slate: Slate, reached: Callable[[], bool]
) -> None:
    """Wait as long as handlers start jobs; fail if a product has stopped before the end."""
    patience = scene.sizes.stalled_seconds
    left, give_up = slate.unstarted, time.monotonic() + patience
    while not reached():
        worker.check()
        unstarted = slate.unstarted
        if unstarted < left:
            left, give_up = unstarted, time.monotonic() + patience
        elif time.monotonic() > give_up:
            if not entrant.contender.is_empty():
                raise Failed(f"is stuck with {left:,} of {slate.jobs:,} jobs not started")
            _note_account(scene, entrant, lost=left, repeated=slate.repeated)
            raise Failed(f"{left:,} of {slate.jobs:,} jobs lost: its backlog is empty")
        time.sleep(0.005)


def _check(scene: Scene, entrant: Entrant, slate: Slate) -> None:
    """Check the product's tables and the handlers' records: each job ended exactly once."""
    lost, repeated = slate.unstarted, slate.repeated
    recorded = entrant.contender.ended()
    if recorded is not None:
        ends, ended = recorded
        lost, repeated = max(lost, slate.jobs - ended), max(repeated, ends - ended)
    _note_account(scene, entrant, lost=lost, repeated=repeated)
    if lost or repeated:
        raise Failed(f"of {slate.jobs:,} jobs {lost:,} lost, {repeated:,} ran more than once")


def _note_account(scene: Scene, entrant: Entrant, *, lost: int, repeated: int) -> None:
    for measure, jobs in (("lost", lost), ("repeated", repeated)):
        scene.board.add(entrant.key, measure, "jobs", jobs, scene.sizes.jobs(entrant.product))


def _note_speed(scene: Scene, measure: str, entrant: Entrant, drain: _Drain) -> None:
    for name, seconds in (
        (measure, drain.seconds),
        (f"{measure}_from_start", drain.seconds_from_start),
    ):
        scene.board.add(entrant.key, name, "jobs/s", drain.jobs / seconds, drain.jobs)
    rate = drain.jobs / drain.seconds
    print(
        f"  {entrant.product.name}: {measure} {rate:,.0f} jobs/s, {drain.jobs:,} jobs", flush=True
    )


def _note_costs(scene: Scene, entrant: Entrant, drain: _Drain) -> None:
    first, last = drain.first, drain.last
    # The first handler is detected a few milliseconds late. The processor time used before that is
    # extrapolated.
    seen = (last.moment - first.moment) / 1e9
    thousands = drain.jobs / 1000 * min(seen / drain.seconds, 1.0)
    costs: list[tuple[str, str, float | None]] = [
        ("cpu_client", "s/1,000 jobs", (last.client - first.client) / thousands),
        ("cpu_server", "s/1,000 jobs", _between(first.server, last.server, thousands)),
        ("cpu", "s/1,000 jobs", _between(first.both, last.both, thousands)),
        (
            "cpu_from_start",
            "s/1,000 jobs",
            _between(drain.before.both, last.both, drain.jobs / 1000),
        ),
        ("wal", "bytes/job", _between(0, drain.log, drain.jobs)),
        ("dead_tuples", "rows/job", _between(0, drain.dead, drain.jobs)),
    ]
    for name, unit, value in costs:
        if value is not None:
            scene.board.add(entrant.key, name, unit, value, drain.jobs)


def _between(before: float | None, after: float | None, jobs: float) -> float | None:
    return None if before is None or after is None else (after - before) / jobs
