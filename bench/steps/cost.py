"""The wall time of a recorded step: alone, and with 50 handlers that share commits."""

import statistics

from bench.figures import Figure
from bench.sizes import Sizes
from bench.steps.runs import run_ours
from bench.steps.scene import Scene

__all__ = ["run"]

_HANDLERS = 50
_GOAL = 1.0


def run(scene: Scene, sizes: Sizes) -> list[Figure]:
    """Measure; goal: at most 1 ms for each step with 50 handlers."""
    steps = sizes.steps.steps
    alone = [
        run_ours(scene.place, 1, steps, 1) / steps * 1000 for _ in range(sizes.steps.repetitions)
    ]
    shared = [
        run_ours(scene.place, _HANDLERS, steps, _HANDLERS) / (steps * _HANDLERS) * 1000
        for _ in range(sizes.steps.repetitions)
    ]
    return [
        Figure("step_ms_alone", statistics.median(alone), "one handler, step after step", "ms"),
        Figure(
            "step_ms_shared",
            statistics.median(shared),
            f"{_HANDLERS} handlers at once, time per step",
            "ms",
            _GOAL,
            "at most",
        ),
    ]
