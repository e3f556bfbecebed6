"""Single enqueues, each in its own transaction: one after the other, and ten at once."""

from bench.contest.scene import Scene
from bench.contest.slices import Slices, run_slices

__all__ = ["run"]

_AT_ONCE = 10


def run(scene: Scene) -> None:
    """Measure one repetition; no worker runs."""
    sizes = scene.sizes
    run_slices(
        scene,
        "enqueue",
        ("singly", 0, 10 * _AT_ONCE, _AT_ONCE),
        [
            Slices("enqueue_1", "singly", lambda _: (sizes.single_calls, sizes.slices), (1,)),
            Slices(
                "enqueue_10",
                "singly",
                lambda _: (sizes.concurrent_calls, sizes.slices),
                (_AT_ONCE,),
            ),
        ],
    )
