"""How fast one worker process empties a backlog of jobs that wait for a millisecond each."""

from bench.contest.drain import measure_drain
from bench.contest.scene import Scene

__all__ = ["run"]

_WORK_SECONDS = 0.001


def run(scene: Scene) -> None:
    """Measure one repetition, with half the jobs of a drain."""
    measure_drain(scene, "drain_1ms", work=_WORK_SECONDS, share=2)
