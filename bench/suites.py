"""What can be run: suites of measures, and what each suite needs around them."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bench.figures import Figure
from bench.place import Place
from bench.rivals import pgqueuer
from bench.sizes import Sizes
from bench.worker.stage import Stage, facts, open_stage

__all__ = ["SUITES", "Suite"]


@dataclass(frozen=True, slots=True)
class Suite:
    """Measures in the order of the run; each is a module of the package with a function ``run``."""

    package: str
    measures: tuple[str, ...]
    # Gets what takes a package index, before a server is started.
    prepare: Callable[[bool], None]
    # Gives what the measures get, and facts that their figures depend on.
    open: Callable[[Place, bool], AbstractContextManager[tuple[Any, dict[str, str]]]]
    # Where a whole run, that is no quick one, writes its object, in `results/`.
    record: str | None = None

    def run(self, name: str, scene: Any, sizes: Sizes) -> list[Figure]:
        """Run one measure."""
        figures: list[Figure] = import_module(f"{self.package}.{name}").run(scene, sizes)
        return figures


def _nothing(rivals: bool) -> None:
    """Most suites need nobody else."""


def _rivals(rivals: bool) -> None:
    if rivals:
        pgqueuer.PRODUCT.prepare()


@contextmanager
def _place_alone(place: Place, rivals: bool) -> Iterator[tuple[Place, dict[str, str]]]:  # noqa: ARG001
    yield place, {}


@contextmanager
def _stage(place: Place, rivals: bool) -> Iterator[tuple[Stage, dict[str, str]]]:
    with open_stage(place, rivals=rivals) as stage:
        yield stage, facts(stage)


SUITES = {
    "engine": Suite(
        "bench.measures",
        ("claim_complete", "enqueue_many", "enqueue", "wal", "depth", "held_snapshot"),
        _nothing,
        _place_alone,
    ),
    "worker": Suite(
        "bench.worker", ("startup", "memory", "pickup", "enqueue", "drain"), _rivals, _stage
    ),
    "drivers": Suite("bench.drivers", ("hot_path",), _nothing, _place_alone),
    "soak": Suite("bench.soak", ("soak",), _nothing, _place_alone),
    "flow": Suite(
        "bench.flow",
        (
            "limits_wide",
            "limits_claim",
            "limits_keys",
            "limits_spent",
            "limits_held_snapshot",
            "unlimited_before_after",
            "fairness",
            "limits_accuracy",
        ),
        _nothing,
        _place_alone,
        record="flow.json",
    ),
    "backlog": Suite("bench.backlog", ("backlog",), _nothing, _place_alone, record="backlog.json"),
}
