"""Enqueues with the bulk call of each product, 1,000 jobs a call."""

from bench.apps.producing import BATCH
from bench.contest.scene import Entrant, Scene
from bench.contest.slices import Slices, run_slices

__all__ = ["run"]


def run(scene: Scene) -> None:
    """Measure one repetition, with as many jobs as a drain; no worker runs."""

    def size(entrant: Entrant) -> tuple[int, int]:
        calls = max(scene.sizes.jobs(entrant.product) // BATCH, 1)
        slices = min(calls, scene.sizes.slices)
        return calls // slices * BATCH, slices

    run_slices(scene, "bulk", ("fill", 0, BATCH), [Slices("bulk", "fill", size)])
