"""The goals of a contest, as ratios of ours to theirs within one run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from bench.contest.record import Board, Result
from bench.figures import Figure

__all__ = ["GOALS", "Goal", "as_json", "judge", "ratio"]

_OURS = "trunkline"

Products = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Goal:
    """Ours over the best of some rivals: the highest or the lowest value."""

    measure: str
    text: str
    ratio: float
    better: Literal["at least", "at most"]
    # The rivals: "all", "Python", or the key of one product.
    rivals: str

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{self.measure}_vs_{self.rivals.lower()}"


GOALS = (
    Goal("drain_1", "drain, 1 process", 3.0, "at least", "Python"),
    Goal("drain_1", "drain, 1 process", 1.2, "at least", "graphile_worker"),
    Goal("drain_2", "drain, 2 processes", 1.4, "at least", "graphile_worker"),
    Goal("drain_2", "drain, 2 processes", 1.0, "at least", "all"),
    Goal("bulk", "bulk enqueue", 1.5, "at least", "Python"),
    Goal("bulk", "bulk enqueue", 0.9, "at least", "pgmq"),
    Goal("enqueue_1", "enqueue one by one", 1.0, "at least", "all"),
    Goal("enqueue_10", "enqueue, ten at once", 1.3, "at least", "pgqueuer"),
    Goal("latency_p50", "pick-up p50 from the commit", 1.0, "at most", "all"),
    Goal("latency_p99", "pick-up p99 from the commit", 1.2, "at most", "all"),
    Goal("latency_call_p50", "pick-up p50 from the call", 1.0, "at most", "all"),
    Goal("latency_call_p99", "pick-up p99 from the call", 1.2, "at most", "all"),
    Goal("cpu", "processor time, client and server", 1.0, "at most", "all"),
)


def judge(board: Board, products: Products) -> tuple[list[Figure], list[str]]:
    """Return a figure for each goal with enough results, and the texts of the other goals."""
    figures, open_goals = [], []
    for goal in GOALS:
        ours = board.get(_OURS, goal.measure)
        rival = _best(goal, board, products)
        value = ratio(ours, rival) if ours is not None and rival is not None else None
        if rival is None or value is None:
            whom = products[goal.rivals]["name"] if goal.rivals in products else goal.rivals
            open_goals.append(f"{goal.text}, against {whom}")
            continue
        name = products[rival.product]["name"]
        of_which = {"all": "best of all, ", "Python": "best in Python, "}.get(goal.rivals, "")
        figures.append(
            Figure(
                goal.key,
                value,
                f"{goal.text}, over {of_which}{name}",
                goal=goal.ratio,
                better=goal.better,
            )
        )
    return figures, open_goals


def as_json(figure: Figure) -> dict[str, Any]:
    """The object of the record."""
    return {
        "key": figure.key,
        "text": figure.text,
        "ratio": round(figure.value, 3),
        "goal": figure.goal,
        "better": figure.better,
        "verdict": figure.verdict,
    }


def ratio(ours: Result, theirs: Result) -> float | None:
    """Return the median of the ratios within repetitions, where both had the same conditions.

    None if a value is not above zero: a handler may start before the call that enqueues returns.
    """
    if min(*ours.values, *theirs.values, ours.median, theirs.median) <= 0:
        return None
    whole = ours.of_all is not None or theirs.of_all is not None
    if whole or len(ours.values) != len(theirs.values):
        return ours.median / theirs.median
    return median(mine / other for mine, other in zip(ours.values, theirs.values, strict=True))


def _best(goal: Goal, board: Board, products: Products) -> Result | None:
    candidates = [
        result
        for key, product in products.items()
        if key != _OURS and goal.rivals in {"all", key, product["language"]}
        if (result := board.get(key, goal.measure)) is not None
    ]
    best: Callable[..., Result | None] = max if goal.better == "at least" else min
    return best(candidates, key=lambda result: result.median, default=None)
