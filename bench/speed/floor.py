"""A stricter goal for what plain jobs cost, for changes that must not slow them down at all."""

from collections.abc import Iterable
from dataclasses import replace

from bench.figures import Figure

__all__ = ["FLOORED", "with_floor"]

# Jobs without limits, workflows or steps: drained, and enqueued one by one.
FLOORED = frozenset(
    {"drain_1_vs_before", "drain_2_vs_before", "single_enqueue_vs_before", "enqueue_vs_before"}
)


def with_floor(figures: Iterable[Figure], floor: float | None) -> list[Figure]:
    """Return the figures, those of plain jobs with this goal."""
    return [
        replace(figure, goal=floor, better="at least")
        if floor is not None and figure.key in FLOORED
        else figure
        for figure in figures
    ]
