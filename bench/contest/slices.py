"""Enqueues in slices: all producers are connected and take turns of a fraction of a second.

The disk determines the speed of a single enqueue. On a shared machine that speed changes within
seconds, so every product gets a share of every second.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench.apps.slate import Slate
from bench.contest.scene import Entrant, Scene
from bench.worker.processes import Orders, producing

__all__ = ["Slices", "run_slices"]


@dataclass(frozen=True, slots=True)
class Slices:
    """One figure: the order to the producer, as a template for the first number and the jobs."""

    measure: str
    order: str
    # Jobs of a slice, and the number of slices.
    size: Callable[[Entrant], tuple[int, int]]
    more: Sequence[Any] = ()


def run_slices(scene: Scene, measure: str, warm_up: Sequence[Any], parts: Sequence[Slices]) -> None:
    """Measure jobs per second of all slices together, for each part."""
    path = scene.folder / "slate"
    Slate.create(path, 1)
    with ExitStack() as stack:
        producers: dict[str, Orders] = {}
        for entrant in scene.runners(measure):
            with scene.turn(entrant, measure):
                entrant.contender.forget()
                producers[entrant.key] = stack.enter_context(producing(entrant.contender, path))
                producers[entrant.key].do(*warm_up)
        # Each number is used once, because some products may use it as the job's name.
        following: dict[str, int] = defaultdict(lambda: 1_000_000)
        for part in parts:
            seconds: dict[str, list[float]] = defaultdict(list)
            for number in range(scene.sizes.slices):
                for entrant in scene.runners(measure):
                    jobs, slices = part.size(entrant)
                    if number >= slices:
                        continue
                    with scene.turn(entrant, measure):
                        order = (part.order, following[entrant.key], jobs, *part.more)
                        seconds[entrant.key].append(producers[entrant.key].do(*order))
                        following[entrant.key] += jobs
            for entrant in scene.entrants:
                _note(scene, measure, part, entrant, seconds[entrant.key])


def _note(
    scene: Scene, measure: str, part: Slices, entrant: Entrant, seconds: Sequence[float]
) -> None:
    jobs, _ = part.size(entrant)
    if seconds and not scene.is_retired(entrant, measure):
        done = jobs * len(seconds)
        rate = done / sum(seconds)
        scene.board.add(entrant.key, part.measure, "jobs/s", rate, done)
        print(f"  {entrant.product.name}: {part.measure} {rate:,.0f} jobs/s", flush=True)
