"""What a profile consists of, and its scripts, which are files of its package."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from importlib.resources.abc import Traversable
from typing import Final

from trunkline.errors import (
    MalformedSql,
    ProfileBroken,
    ProfileRefusal,
    ProfileSchemaName,
    UnknownPhase,
)

__all__ = ["Phase", "Profile", "RollbackStep", "Script", "render", "schema_name", "statement"]

_REQUIRES: Final = re.compile(r"^-- requires:(?P<names>.*)$", re.MULTILINE)
_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_NOT_OURS: Final = ("pg_", "trunkline", "information_schema")
_SQLSTATE: Final = re.compile(r"(?!TL|0|P0|XX)[0-9A-Z]{5}")


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

    # Its folder under the root of the profile, such as ``phase1``.
    name: str
    title: str
    # Phases that must be installed before it.
    after: tuple[str, ...] = ()
    # Whether `install` applies it unless other phases are named.
    core: bool = False


@dataclass(frozen=True, slots=True)
class RollbackStep:
    """One step back, in its own transaction; it can be repeated."""

    # Its file in the folder ``rollback``, without ``.sql``.
    name: str
    title: str
    # Scripts, as phase/name, that are no longer in force after it.
    undoes: tuple[str, ...]
    # Run only with `--purge`, because it removes data.
    optional: bool = False
    # A question whose rows name the users of what the step would drop.
    guard: str | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile: its name, its schema, and the folder with its SQL files."""

    # The name of its entry point.
    name: str
    # One sentence for `trunkline profile list`.
    description: str
    # The schema that the scripts name; `install` can put another one in its place.
    schema: str
    # The folder of its SQL files: one folder per phase, ``rollback`` and ``ask``.
    root: Traversable
    phases: tuple[Phase, ...]
    # The steps that take it back, in this order.
    rollback: tuple[RollbackStep, ...]
    # A script that runs after each phase, for example to revoke privileges.
    closing: str | None = None
    # What `trunkline profile troubleshoot` answers: topic, then its questions as (title, file).
    topics: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    # Grants that its functions give in operation, as `trunkline schema verify` names them.
    optional_grants: frozenset[str] = frozenset()
    # Whether it has a checklist, a cut-over and a roll-back as steps that are recorded.
    has_rollout: bool = False
    # Whether `trunkline profile validate` can run validate/tests.sql and ask `validation`.
    has_validation: bool = False
    # The question that does what is due, for `trunkline profile wake`.
    wake_up: str | None = None
    # The module of its demonstration, see `Demo`.
    demo: str | None = None
    # Exceptions for the refusals of its functions, one for each SQLSTATE.
    errors: tuple[type[ProfileRefusal], ...] = ()

    def __post_init__(self) -> None:
        for error in self.errors:
            if problem := _flaw(error, self.name):
                raise ProfileBroken(f"Profile {self.name} registers {error.__name__}: {problem}")
        if len(self.sqlstates) < len(self.errors):
            raise ProfileBroken(f"Profile {self.name} registers two errors with one SQLSTATE")

    @property
    def sqlstates(self) -> dict[str, type[ProfileRefusal]]:
        """The registered exceptions by SQLSTATE."""
        return {error.sqlstate: error for error in self.errors}

    def phase(self, name: str) -> Phase:
        """Return the phase of that name; ``2`` means ``phase2``."""
        for phase in self.phases:
            if name in {phase.name, phase.name.removeprefix("phase")}:
                return phase
        known = ", ".join(phase.name for phase in self.phases)
        raise UnknownPhase(f"Profile {self.name} has no phase {name!r}; it has: {known}")

    def select(self, names: Iterable[str]) -> tuple[Phase, ...]:
        """Return these phases, by default the core, and those they need, in order."""
        wanted = [self.phase(name) for name in names] or [p for p in self.phases if p.core]
        needed = {phase.name for phase in wanted}
        while more := {a for p in self.phases if p.name in needed for a in p.after} - needed:
            needed |= more
        order = TopologicalSorter({p.name: p.after for p in self.phases}).static_order()
        return tuple(self.phase(name) for name in order if name in needed)

    def scripts(self, phase: Phase) -> tuple[Script, ...]:
        """Return the scripts of a phase in the order of their dependencies."""
        found = {s.name: s for s in _read(self.root / phase.name)}
        earlier = {
            script.name
            for other in self.phases
            if other.name in phase.after
            for script in _read(self.root / other.name)
        }
        return _in_order(found, earlier)

    def text(self, *path: str) -> str:
        """Return the text of a file under the root."""
        return self.root.joinpath(*path).read_text(encoding="utf-8")


def _flaw(error: type[ProfileRefusal], profile: str) -> str | None:
    if not _SQLSTATE.fullmatch(error.sqlstate):
        return f"SQLSTATE {error.sqlstate!r} is not one that a profile may use"
    if not error.code.startswith(f"{profile}_"):
        return f"its code {error.code!r} does not start with {profile}_"
    # The base has a hint that says nothing about one code.
    missing = [
        name
        for name in ("hint", "page")
        if getattr(error, name) in {"", getattr(ProfileRefusal, name)}
    ]
    return f"it has no {' and no '.join(missing)}" if missing else None


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
