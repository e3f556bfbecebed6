"""How much memory a worker process takes while idle, and whether it grows with the jobs."""

import time
from statistics import median

from bench.figures import Figure
from bench.rivals.product import Contender
from bench.sizes import Sizes
from bench.worker.processes import Watched, producing, wait_for, working
from bench.worker.stage import Stage

__all__ = ["run"]

_PATIENCE = 300.0
_SAMPLES = 5


def run(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Measure; goals: below 80 MB idle, and no growth beyond a tenth."""
    figures = [_idle(stage, contender, sizes) for contender in stage.contenders[:2]]
    return figures + _growth(stage, sizes)


def _idle(stage: Stage, contender: Contender, sizes: Sizes) -> Figure:
    """Memory of a worker that was started and ran one job."""
    path, slate = stage.slate(1)
    contender.forget()
    with working(contender, path) as worker, producing(contender, path) as producer:
        producer.do("singly", 0, 1)
        wait_for(lambda: slate.unstarted == 0, worker, seconds=_PATIENCE)
        memory = _settled(worker, sizes.memory_settle)
    is_ours = contender is stage.ours
    return Figure(
        f"memory_idle_{contender.key}",
        memory,
        f"{contender.name}: idle worker process",
        "MB",
        goal=80 if is_ours else None,
        better="at most",
    )


def _growth(stage: Stage, sizes: Sizes) -> list[Figure]:
    """Memory after a tenth of the jobs, when buffers have their final size, and after all."""
    jobs, warm_up = sizes.memory_jobs, sizes.memory_jobs // 10
    path, slate = stage.slate(jobs + warm_up)
    stage.ours.forget()
    with working(stage.ours, path) as worker, producing(stage.ours, path) as producer:
        producer.do("fill", 0, warm_up)
        wait_for(lambda: slate.unstarted <= jobs, worker, seconds=_PATIENCE)
        warm = _settled(worker, sizes.memory_settle)
        producer.do("fill", warm_up, jobs)
        wait_for(lambda: slate.unstarted == 0, worker, seconds=_PATIENCE)
        end = _settled(worker, sizes.memory_settle)
    return [
        Figure("memory_warm", warm, f"after {warm_up:,} jobs", "MB"),
        Figure("memory_end", end, f"after {jobs:,} more", "MB", goal=80, better="at most"),
        Figure("memory_growth", end / warm, "growth as a ratio", goal=1.1, better="at most"),
    ]


def _settled(worker: Watched, seconds: float) -> float:
    """The median of a few samples, taken when it is at rest."""
    seen = []
    for _ in range(_SAMPLES):
        time.sleep(seconds / _SAMPLES)
        worker.check()
        seen.append(worker.memory)
    return median(seen)
