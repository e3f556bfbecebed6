"""Applies phases of a profile and takes them back, one transaction each, with a record of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from trunkline.errors import ProfileInUse, SchemaMissing
from trunkline.profiles import objects
from trunkline.profiles.profile import (
    Phase,
    Profile,
    Script,
    render,
    schema_name,
    statement,
)
from trunkline.profiles.sessions import SQL, Session, is_recorded
from trunkline.schema import plan
from trunkline.schema.plan import LOCK_TIMEOUT, Step
from trunkline.schema.release import require_not_newer
from trunkline.schema.session import Connection, connect, is_installed, run

__all__ = ["ScriptState", "install", "rollback", "status"]


@dataclass(frozen=True, slots=True)
class ScriptState:
    """One script and whether it is in force: ``applied``, ``missing``, ``changed`` or ``broken``.

    Broken means that objects it created are missing; ``lost`` lists them.
    """

    phase: str
    script: str
    state: str
    lost: tuple[str, ...] = ()


def install(
    dsn: str,
    profile: Profile,
    phases: Iterable[str] = (),
    *,
    schema: str | None = None,
    again: bool = False,
    dry_run: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
) -> tuple[str, ...]:
    """Apply phases and those they need; return the scripts applied, as phase/name.

    Scripts in force are skipped, unless ``again`` is set. A script whose objects are missing, for
    instance after the engine was removed, is always applied again. A ``dry_run`` applies
    everything in one transaction and rolls it back.
    """
    target = schema_name(schema or profile.schema)
    chosen = profile.select(phases)
    # A transaction each: what a later phase stumbles over does not take an earlier one back.
    batches = [chosen] if dry_run else [(phase,) for phase in chosen]
    applied: list[str] = []
    for batch in batches:
        with connect(dsn) as connection:
            for phase in batch:
                # The role taken for the phase before lasts until the transaction ends.
                connection.execute("reset role")
                _open(connection, lock_timeout)
                run(connection, Step("schema of the profile", statement(SQL, "prepare", target)))
                run(connection, Step("record of it", statement(SQL, "bookkeeping", target)))
                applied += _apply(connection, profile, phase, target, again=again)
            if dry_run:
                connection.rollback()
    return tuple(applied)


def _apply(
    connection: Connection, profile: Profile, phase: Phase, schema: str, *, again: bool
) -> list[str]:
    known = {} if again else _applied(connection, profile, schema)
    there = objects.present(connection, schema)
    done: list[str] = []
    for script in profile.scripts(phase):
        state = _state(phase, script, known, there)
        if state.state == "applied":
            continue
        name = f"{phase.name}/{script.name}"
        run(connection, Step(name, render(script.text, profile.schema, schema)))
        facts = {"phase": phase.name, "script": script.name, "sha256": script.sha256}
        _change(connection, "record", schema, {"profile": profile.name, **facts})
        done.append(name)
    if done and profile.closing:
        text = render(profile.text(profile.closing), profile.schema, schema)
        run(connection, Step(profile.closing, text))
    return done


def rollback(
    dsn: str,
    profile: Profile,
    *,
    schema: str | None = None,
    purge: bool = False,
    force: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
) -> tuple[str, ...]:
    """Take the profile back step by step; return the names of the steps.

    Jobs stay. ``purge`` also runs optional steps, which remove data of the profile. A step that
    would drop what is in use is refused, unless ``force`` is set; the steps before it remain done.
    """
    target = schema_name(schema or profile.schema)
    done: list[str] = []
    for step in profile.rollback:
        if step.optional and not purge:
            continue
        with connect(dsn) as connection:
            _open(connection, lock_timeout)
            if not is_recorded(connection, target):
                return tuple(done)
            connection.execute(statement(SQL, "take_role", target).encode())
            if step.guard and not force:
                users = Session(connection, profile, target).ask(step.guard)
                if users:
                    names = ", ".join(str(row[0]) for row in users)
                    raise ProfileInUse(f"{step.title}: still used by {names}")
            text = render(profile.text("rollback", f"{step.name}.sql"), profile.schema, target)
            run(connection, Step(f"rollback/{step.name}", text))
            facts = {"profile": profile.name, "scripts": list(step.undoes)}
            _change(connection, "forget", target, facts)
            if step.optional:
                run(connection, Step("record of the profile", statement(SQL, "sweep", target)))
        done.append(step.name)
    return tuple(done)


def status(dsn: str, profile: Profile, *, schema: str | None = None) -> tuple[ScriptState, ...]:
    """Return every script of every phase and whether it is in force.

    Compares the record with the catalogue: the objects of an applied script must exist.
    """
    target = schema_name(schema or profile.schema)
    with connect(dsn) as connection:
        known = _applied(connection, profile, target) if is_recorded(connection, target) else {}
        there = objects.present(connection, target)
    return tuple(
        _state(phase, script, known, there)
        for phase in profile.phases
        for script in profile.scripts(phase)
    )


def _state(
    phase: Phase, script: Script, known: Mapping[tuple[str, str], str], there: frozenset[str]
) -> ScriptState:
    applied = known.get((phase.name, script.name))
    if applied is None:
        return ScriptState(phase.name, script.name, "missing")
    lost = tuple(sorted(objects.declared(script) - there))
    if lost:
        return ScriptState(phase.name, script.name, "broken", lost)
    state = "applied" if applied == script.sha256 else "changed"
    return ScriptState(phase.name, script.name, state)


def _open(connection: Connection, lock_timeout: float) -> None:
    run(connection, plan.session(lock_timeout))
    if not is_installed(connection):
        raise SchemaMissing("This database has no Trunkline schema")
    # Profile scripts ship with the package, so an older package would restore old functions.
    require_not_newer(connection)
    run(connection, plan.lock())
    connection.execute("reset role")


def _applied(connection: Connection, profile: Profile, schema: str) -> dict[tuple[str, str], str]:
    rows = connection.execute(statement(SQL, "applied", schema).encode(), {"profile": profile.name})
    return {(phase, script): sha256 for phase, script, sha256 in rows}


def _change(connection: Connection, name: str, schema: str, parameters: Mapping[str, Any]) -> None:
    connection.execute(statement(SQL, name, schema).encode(), parameters)
