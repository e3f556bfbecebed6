"""What a profile consists of, and its scripts as files beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from importlib.resources.abc import Traversable
from typing import Final

from trunkline.errors import MalformedSql, ProfileSchemaName, UnknownPhase

__all__ = ["Phase", "Profile", "RollbackStep", "Script", "render", "schema_name", "statement"]

_REQUIRES: Final = re.compile(r"^-- requires:(?P<names>.*)$", re.MULTILINE)
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_NOT_OURS: Final = ("pg_", "trunkline", "information_schema")


@dataclass(frozen=True, slots=True)
class Script:
    """One file of a phase; it can be applied again at any time."""

    name: str
    text: str
    requires: tuple[str, ...] = ()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Phase:
    """Scripts that are applied together, in one transaction."""

    name: str
    title: str
    after: tuple[str, ...] = ()
    # Whether `install` applies it without being asked.
    core: bool = False


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """One step back, in a transaction of its own; it may be repeated."""

    name: str
    title: str
    # Scripts, as phase/name, that are no longer in force after it.
    undoes: tuple[str, ...]
    # Only taken when asked for, because it removes data.
    optional: bool = False
    # A query whose rows say who still uses what the step would drop.
    guard: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: its phases are folders of scripts under ``root``."""

    name: str
    description: str
    # The schema as the scripts spell it, and the one used unless another is asked for.
    schema: str
    root: Traversable
    phases: tuple[Phase, ...]
    rollback: tuple[RollbackStep, ...]
    closing: str | None = None
    # What `trunkline profile troubleshoot` answers: topic, then its questions as (title, file).
    topics: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    # Grants that its own functions give in operation, as `verify` names them.
    optional_grants: frozenset[str] = frozenset()
    # Whether it has a checklist, a cut-over and a roll-back of its own: see rollout.py.
    has_rollout: bool = False

    def phase(self, name: str) -> Phase:
        """The phase of that name; a bare number stands for it too."""
        for phase in self.phases:
            if name in {phase.name, phase.name.removeprefix("phase")}:
                return phase
        known = ", ".join(phase.name for phase in self.phases)
        raise UnknownPhase(f"Profile {self.name} has no phase {name!r}; it has: {known}")

    def select(self, names: Iterable[str]) -> tuple[Phase, ...]:
        """Those phases and what they stand on, in the order to apply them; none given: the core."""
        wanted = [self.phase(name) for name in names] or [p for p in self.phases if p.core]
        needed = {phase.name for phase in wanted}
        while more := {a for p in self.phases if p.name in needed for a in p.after} - needed:
            needed |= more
        order = TopologicalSorter({p.name: p.after for p in self.phases}).static_order()
        return tuple(self.phase(name) for name in order if name in needed)

    def scripts(self, phase: Phase) -> tuple[Script, ...]:
        """The scripts of a phase in the order of their dependencies, whatever their names."""
        found = {s.name: s for s in _read(self.root / phase.name)}
        earlier = {
            script.name
            for other in self.phases
            if other.name in phase.after
            for script in _read(self.root / other.name)
        }
        return _in_order(found, earlier)

    def text(self, *path: str) -> str:
        """A file of the profile that belongs to no phase."""
        return self.root.joinpath(*path).read_text(encoding="utf-8")


def _in_order(found: dict[str, Script], earlier: set[str]) -> tuple[Script, ...]:
    graph: dict[str, Sequence[str]] = {}
    for script in found.values():
        for name in script.requires:
            if name not in found and name not in earlier:
                raise MalformedSql(f"{script.name}.sql", f"it requires {name}, which is not there")
        graph[script.name] = sorted(name for name in script.requires if name in found)
    try:
        return tuple(found[name] for name in TopologicalSorter(graph).static_order())
    except CycleError as error:
        raise MalformedSql(f"{error.args[1][0]}.sql", "it requires itself") from error


def _read(folder: Traversable) -> list[Script]:
    entries = sorted((e for e in folder.iterdir() if e.name.endswith(".sql")), key=lambda e: e.name)
    return [_script(entry) for entry in entries]


def _script(entry: Traversable) -> Script:
    text = entry.read_text(encoding="utf-8")
    header = _REQUIRES.search(text)
    if header is None:
        raise MalformedSql(entry.name, "it should have a line '-- requires: name, name'")
    names = tuple(name.strip() for name in header["names"].split(",") if name.strip())
    return Script(entry.name.removesuffix(".sql"), text, names)


def schema_name(name: str) -> str:
    """The name, if a profile may live in a schema of that name."""
    if not _SCHEMA.fullmatch(name) or name.startswith(_NOT_OURS):
        raise ProfileSchemaName(f"{name!r} cannot be the schema of a profile")
    return name


def render(text: str, spelled: str, schema: str) -> str:
    """Put another schema into a script; in one for its own schema nothing changes."""
    if schema == spelled:
        return text
    quoted = f'"{schema_name(schema)}"'
    text = re.sub(rf"\b{spelled}\.(?=[a-z_])", f"{quoted}.", text)
    text = re.sub(rf"\b(schema(?: if (?:not )?exists)?) {spelled}\b", rf"\1 {quoted}", text)
    return re.sub(rf"'{spelled}'(?=\)|::regnamespace)", f"'{quoted}'", text)


def statement(root: Traversable, name: str, schema: str) -> str:
    """A statement of the installer's own, for a profile's schema."""
    text = (root / f"{name}.sql").read_text(encoding="utf-8")
    return render(text, "profile_schema", schema)
