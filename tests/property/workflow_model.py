"""What a workflow should do, in plain Python: steps with items, their states, and the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

__all__ = ["STOPPABLE", "WAITS", "Model", "Step", "Waits"]

# Jobs that have not started, or are suspended; due: suspended until a time that has come.
STOPPABLE = {"blocked", "ready", "suspended", "due"}
LIVE = STOPPABLE | {"running"}
# What handlers wait for by name: the kind of the wait, and after how many minutes it ends.
WAITS: dict[str, tuple[str, int | None]] = {
    "a": ("event", None),
    "b": ("event", 10),
    "nap": ("sleep", 10),
}


@dataclass
class Waits:
    """What one job has waited for, in all its attempts."""

    events: set[str] = field(default_factory=set)
    # Waits that are over. Handlers do not ask for them again.
    recorded: set[str] = field(default_factory=set)
    # When each wait ends, counted from the first attempt that began it.
    until: dict[str, int | None] = field(default_factory=dict)
    # What the last attempt waits for.
    open: set[str] = field(default_factory=set)

    def begin(self, name: str, now: int) -> str:
        """Return what the engine has to answer."""
        kind, limit = WAITS[name]
        until = self.until.setdefault(name, None if limit is None else now + limit)
        if name in self.events:
            outcome = "over"
        elif until is not None and until <= now:
            outcome = "over" if kind == "sleep" else "timeout"
        else:
            self.open.add(name)
            return "wait"
        self.recorded.add(name)
        return outcome

    @property
    def due(self) -> int | None:
        """When a suspended job continues by itself."""
        return min(
            (end for name in self.open if (end := self.until[name]) is not None), default=None
        )


@dataclass
class Step:
    """A step of the model; items are the states of its jobs, none before a map is expanded."""

    name: str
    after: list[str]
    items: list[str]
    is_set: bool
    tries: int
    state: str = "blocked"
    reason: str | None = None
    failures: list[int] = field(default_factory=list)
    # What its only job returns.
    result: Any = None
    map_over: str | None = None
    expanded: bool = True

    @property
    def is_bad(self) -> bool:
        return self.state == "failed" or (self.state == "cancelled" and self.reason != "dependency")


class Model:
    """One workflow. Every change ends with `settle`, which does what follows from it."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self.steps = {step.name: step for step in steps}
        self.generation = 1
        self.state = "live"
        self.stopping = False
        self.ends = 0
        # In minutes.
        self.now = 0
        self.waits: dict[tuple[str, int], Waits] = {}
        for step in self.steps.values():
            step.failures = [0] * len(step.items)
        self.settle()

    def jobs(self) -> dict[tuple[str, int], str]:
        return {
            (step.name, number): state
            for step in self.steps.values()
            for number, state in enumerate(step.items)
        }

    def startable(self, name: str) -> bool:
        return all(self.steps[one].state == "completed" for one in self.steps[name].after)

    def claim(self, name: str, item: int) -> None:
        state = self.steps[name].items[item]
        assert state in {"ready", "due"}, f"{name}/{item} was claimed too early"
        assert self.startable(name)
        self.steps[name].items[item] = "running"

    def complete(self, name: str, item: int) -> None:
        self._end(name, item, "completed")

    def fail(self, name: str, item: int) -> None:
        step = self.steps[name]
        step.failures[item] += 1
        if self.stopping:
            self._end(name, item, "cancelled")
        elif step.failures[item] < step.tries:
            step.items[item] = "ready"
        else:
            self._end(name, item, "dead")

    def cancel(self, name: str, item: int) -> None:
        if self.steps[name].items[item] in STOPPABLE:
            self._end(name, item, "cancelled")

    def suspend(self, name: str, item: int) -> None:
        if self.stopping:
            self._end(name, item, "cancelled")
        else:
            self.steps[name].items[item] = "suspended"

    def send(self, name: str, item: int, event: str) -> None:
        waits = self.waits_of(name, item)
        waits.events.add(event)
        states = self.steps[name].items
        if states[item] in {"suspended", "due"} and event in waits.open:
            states[item] = "ready"

    def wake(self, *, early: bool = False) -> None:
        """Let suspended jobs continue whose time has come, or that have one at all."""
        for (name, item), state in self.jobs().items():
            due = self.waits_of(name, item).due
            if state == "suspended" and due is not None and (early or due <= self.now):
                self.steps[name].items[item] = "due"

    def waits_of(self, name: str, item: int) -> Waits:
        return self.waits.setdefault((name, item), Waits())

    def unexpanded(self) -> list[Step]:
        """Return the maps that the duty has to expand."""
        return [s for s in self.steps.values() if s.state == "open" and not s.expanded]

    def expand(self) -> None:
        for step in self.unexpanded():
            source = self.steps[step.map_over or ""]
            if source.is_set:
                size = len(source.items)
            elif isinstance(source.result, list):
                size = len(source.result)
            else:
                step.state, step.reason = "failed", "map_not_array"
                continue
            step.items, step.failures, step.expanded = ["ready"] * size, [0] * size, True
        self.settle()

    def stop(self) -> None:
        if self.state != "live":
            return
        self.stopping = True
        for step in self.steps.values():
            step.items = ["cancelled" if one in STOPPABLE else one for one in step.items]
            if step.state == "blocked" or (step.state == "open" and not step.expanded):
                step.state, step.reason = "cancelled", "workflow"
        self.settle()

    def refused_maps(self) -> list[tuple[str, None]]:
        """Return the maps that could not be expanded; a retry of the workflow repeats them."""
        return [(s.name, None) for s in self.steps.values() if s.reason == "map_not_array"]

    def retry(self, jobs: Iterable[tuple[str, int | None]]) -> None:
        for name, item in jobs:
            step = self.steps[name]
            if item is not None:
                step.items[item], step.failures[item] = "ready", 0
            if "dead" in step.items:
                step.state = "failed"
            elif "cancelled" in step.items:
                step.state, step.reason = "cancelled", "cancelled"
            else:
                step.state, step.reason = "open", None
            if self.state != "live":
                self.state, self.stopping = "live", False
                self.generation += 1
            for other in self.steps.values():
                if other.reason == "dependency" and not any(
                    one.is_bad for one in self._before(other)
                ):
                    other.state, other.reason = "blocked", None
                    other.items = ["blocked" if one == "gone" else one for one in other.items]
        self.settle()

    def _before(self, step: Step) -> Iterator[Step]:
        for name in step.after:
            yield self.steps[name]
            yield from self._before(self.steps[name])

    def _end(self, name: str, item: int, state: str) -> None:
        self.steps[name].items[item] = state
        self.settle()

    def settle(self) -> None:
        """Bring all steps up to date, in the order of their dependencies, then the workflow."""
        if self.state != "live":
            return
        for step in self.steps.values():
            self._open_or_close(step)
            if step.reason != "dependency" and (step.state != "blocked" or not step.is_set):
                self._judge(step)
        states = {step.state for step in self.steps.values()}
        live = any(LIVE & {*step.items} for step in self.steps.values())
        if live or states & {"blocked", "open"}:
            return
        self.ends += 1
        if states == {"completed"}:
            self.state = "completed"
        elif self.stopping or "failed" not in states:
            self.state = "cancelled"
        else:
            self.state = "failed"

    def _open_or_close(self, step: Step) -> None:
        before = {self.steps[name].state for name in step.after}
        if step.state != "blocked":
            return
        if before & {"failed", "cancelled"}:
            step.state, step.reason = "cancelled", "dependency"
            # Not the same as cancelled by somebody: only these come back.
            step.items = ["gone" if one == "blocked" else one for one in step.items]
        elif before <= {"completed"}:
            step.state = "open"
            step.items = ["ready" if one == "blocked" else one for one in step.items]

    def _judge(self, step: Step) -> None:
        if "dead" in step.items:
            step.state, step.reason = "failed", "dead"
        elif step.state in {"open", "blocked"} and "cancelled" in step.items:
            step.state, step.reason = "cancelled", "workflow" if self.stopping else "cancelled"
        elif step.state == "open" and step.expanded and not LIVE & {*step.items}:
            step.state = "completed"
