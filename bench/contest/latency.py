"""How soon an idle worker starts a job, one product after the other.

A repetition is too short for a 99th percentile, so the figure is that of the samples of all
repetitions together. Its spread is that of the percentiles of the repetitions.
"""

import time
from contextlib import ExitStack

from bench.contest.record import Result
from bench.contest.scene import Entrant, Scene
from bench.worker.idle import WARM_UP, assemble, moments, percentile, times

__all__ = ["run"]

_INTERVAL = 30_000_000
_JITTER = 8_000_000
_HEAD_START = 300_000_000


def run(scene: Scene) -> None:
    """Measure one repetition."""
    jobs = scene.sizes.pickups + WARM_UP
    for entrant in scene.runners("latency"):
        with scene.turn(entrant, "latency"):
            with ExitStack() as stack:
                path = scene.folder / entrant.key
                team = assemble(entrant.contender, path, jobs, stack, lenient=True)
                begin = time.monotonic_ns() + _HEAD_START
                team.producer.send("at", moments(begin, _INTERVAL, _JITTER, jobs))
                delays = times(team)
            _note(scene, entrant, "latency", delays.from_commit)
            _note(scene, entrant, "latency_call", delays.from_call)


def _note(scene: Scene, entrant: Entrant, what: str, samples: list[float]) -> None:
    repetitions = scene.samples[entrant.key, what]
    repetitions.append(samples)
    together = [sample for repetition in repetitions for sample in repetition]
    for percent in (50, 95, 99):
        scene.board.put(
            Result(
                entrant.key,
                f"{what}_p{percent}",
                "ms",
                tuple(percentile(repetition, percent) for repetition in repetitions),
                len(together),
                of_all=percentile(together, percent),
            )
        )
    shown = ", ".join(f"p{percent} {percentile(samples, percent):.1f}" for percent in (50, 95, 99))
    print(f"  {entrant.product.name}: {what} {shown} ms", flush=True)
