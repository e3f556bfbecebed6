"""The suites of measures, and what each suite needs to run."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from bench.figures import Figure
from bench.place import Place
from bench.rivals import pgqueuer
from bench.sizes import FULL, SPEED, Sizes
from bench.steps import scene as step_scene
from bench.worker.stage import Stage, facts, open_stage

__all__ = ["SPEED_SUITE", "SUITES", "Suite"]

# The one that compares two versions.
SPEED_SUITE = "speed"


@dataclass(frozen=True, slots=True)
class Suite:
    """Measures in the order of the run; each is a module with a function ``run``."""

    # By name of the measure.
    modules: Mapping[str, str]
    # Installs what needs a package index, before a server is started.
    prepare: Callable[[bool], None]
    # Yields the argument of the measures, and facts that their figures depend on.
    open: Callable[[Place, bool], AbstractContextManager[tuple[Any, dict[str, str]]]]
    # The file in `results/` to which a complete run that is not quick writes its object.
    record: str | None = None
    sizes: Sizes = FULL

    @property
    def measures(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self.modules)

    def run(self, name: str, scene: Any, sizes: Sizes) -> list[Figure]:
        """Run one measure."""
        figures: list[Figure] = import_module(self.modules[name]).run(scene, sizes)
        return figures


def _of(package: str, *names: str) -> dict[str, str]:
    """Return the modules of a package."""
    return {name: f"{package}.{name}" for name in names}


def _nothing(rivals: bool) -> None:
    """Most suites need no rivals."""


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
        _of(
            "bench.measures",
            *("claim_complete", "enqueue_many", "enqueue", "wal", "depth", "held_snapshot"),
        ),
        _nothing,
        _place_alone,
    ),
    "worker": Suite(
        _of("bench.worker", "startup", "memory", "pickup", "enqueue", "drain"), _rivals, _stage
    ),
    "drivers": Suite(_of("bench.drivers", "hot_path"), _nothing, _place_alone),
    "soak": Suite(_of("bench.soak", "soak"), _nothing, _place_alone),
    "flow": Suite(
        _of(
            "bench.flow",
            "limits_wide",
            "limits_claim",
            "limits_keys",
            "limits_spent",
            "limits_held_snapshot",
            "fairness",
            "limited_call",
            "limits_accuracy",
        ),
        _nothing,
        _place_alone,
        record="flow.json",
    ),
    "workflows": Suite(
        _of("bench.workflows", "fan_out", "ends"),
        _nothing,
        _place_alone,
        record="workflows.json",
    ),
    "backlog": Suite(
        _of("bench.backlog", "backlog"), _nothing, _place_alone, record="backlog.json"
    ),
    "steps": Suite(
        _of("bench.steps", "cost", "workflows"),
        step_scene.prepare,
        step_scene.open_scene,
        record="steps.json",
    ),
    "live": Suite(_of("bench.live", "latency", "idle"), _nothing, _place_alone, record="live.json"),
    "studio": Suite(_of("bench.studio", "claims"), _nothing, _place_alone),
    "artifacts": Suite(
        _of("bench.artifacts", "upload", "archive"),
        _nothing,
        _place_alone,
        record="artifacts.json",
    ),
    # Measures without ratios within one version are compared; the others have this version's goals.
    SPEED_SUITE: Suite(
        {
            **_of("bench.speed", "drain", "enqueue", "claim_complete", "limits_wide"),
            **_of("bench.speed", "limits_keys", "wal"),
            **_of("bench.flow", "limits_spent", "limits_held_snapshot", "fairness"),
            **_of("bench.measures", "held_snapshot", "depth"),
            **_of("bench.soak", "soak"),
        },
        _nothing,
        _place_alone,
        sizes=SPEED,
    ),
}
