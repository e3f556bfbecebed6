"""Two versions side by side: their places, and figures from paired repetitions."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Literal

from bench.figures import Figure
from bench.place import Place

__all__ = ["BEFORE", "NOW", "Both", "compare", "in_order", "processor_time", "versions"]

NOW, BEFORE = "now", "before"

# One number of each repetition, by version.
Both = Mapping[str, Sequence[float]]


def versions(place: Place) -> dict[str, Place]:
    """Return the place of each version."""
    if place.before is None:
        raise RuntimeError("This measure needs another version: --before COMMIT")
    return {BEFORE: place.before, NOW: place}


def in_order(keys: Sequence[str], repetition: int) -> Sequence[str]:
    """Reverse the order every other time, so that no version always goes first."""
    return keys if repetition % 2 == 0 else list(reversed(keys))


def _ratios(values: Both) -> list[float]:
    """Return now over before for each repetition."""
    return [now / then for now, then in zip(values[NOW], values[BEFORE], strict=True)]


def processor_time(key: str, values: Both) -> Figure:
    """Return the median ratio of processor time, now over before, within repetitions."""
    text = "  processor time, now over before"
    return Figure(f"{key}_cpu_vs_before", median(_ratios(values)), text)


def compare(
    key: str,
    text: str,
    values: Both,
    *,
    unit: str = "jobs/s",
    goal: float | None = None,
    better: Literal["at least", "at most"] = "at least",
) -> list[Figure]:
    """Return the median of each version, and the median ratio within repetitions."""
    ratios = _ratios(values)
    best = max if better == "at least" else min
    return [
        Figure(f"{key}_before", median(values[BEFORE]), f"{text}, before", unit),
        Figure(f"{key}_now", median(values[NOW]), f"{text}, now", unit),
        Figure(f"{key}_vs_before", median(ratios), "  now over before", goal=goal, better=better),
        Figure(
            f"{key}_vs_before_best", best(values[NOW]) / best(values[BEFORE]), "  best over best"
        ),
        Figure(f"{key}_vs_before_least", min(ratios), "  lowest repetition"),
        Figure(f"{key}_vs_before_most", max(ratios), "  highest repetition"),
    ]
