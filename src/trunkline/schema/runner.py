"""Brings a database from its version to the shipped one, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trunkline import sql
from trunkline.errors import (
    MigrationChanged,
    SchemaMissing,
    SchemaNewerThanClient,
    SchemaPredatesBaseline,
)
from trunkline.schema import plan, release
from trunkline.schema.plan import Options
from trunkline.schema.session import Connection, connect, is_installed, run

__all__ = ["Report", "bring_up_to_date"]


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an installation or upgrade. Version 0 means that there was no schema."""

    before: int
    version: int
    applied: tuple[sql.Migration, ...]
    objects: int

    @property
    def breaking(self) -> bool:
        """Whether clients of an earlier release stop working."""
        return any(migration.breaking for migration in self.applied)


@dataclass(frozen=True, slots=True)
class _Applied:
    version: int
    name: str
    sha256: str


def bring_up_to_date(dsn: str, options: Options, *, from_nothing: bool) -> Report:
    """Apply all missing steps. Without ``from_nothing`` the schema must exist."""
    # Read the files first: a damaged package must not even connect.
    shipped = sql.migrations(options.root)
    closing = tuple(plan.closing(options))
    with connect(dsn) as connection:
        if not from_nothing and not is_installed(connection):
            raise SchemaMissing("This database has no Trunkline schema")
        for step in plan.opening(options):
            run(connection, step)
        # Read only under the lock: a parallel installation may have just ended.
        applied = _applied(connection)
        if applied:
            _require_baseline(shipped[0], applied[0])
            release.require_not_newer(connection)
        pending = _pending(shipped, applied)
        for step in (*plan.migrating(pending), *closing):
            run(connection, step)
    return Report(
        before=len(applied),
        version=len(shipped),
        applied=pending,
        objects=len(sql.repeatables(options.root)),
    )


def _applied(connection: Connection) -> tuple[_Applied, ...]:
    if not is_installed(connection):
        return ()
    rows = connection.execute(
        "select m.version, m.name, m.sha256"
        " from trunkline_internal.schema_migrations as m order by m.version"
    )
    return tuple(_Applied(*row) for row in rows)


def _require_baseline(ours: sql.Migration, theirs: _Applied) -> None:
    if ours.name != theirs.name:
        raise SchemaPredatesBaseline(
            f"The schema starts with migration {theirs.version:04}_{theirs.name}, from before"
            f" {ours.label}, and cannot be upgraded"
        )


def _pending(
    shipped: Sequence[sql.Migration], applied: Sequence[_Applied]
) -> tuple[sql.Migration, ...]:
    """Return the migrations to apply, after checking that applied ones equal the shipped ones."""
    if len(applied) > len(shipped):
        newest = applied[-1]
        raise SchemaNewerThanClient(
            f"The database has migration {newest.version:04}_{newest.name}; "
            f"this package ends at {len(shipped):04}"
        )
    for ours, theirs in zip(shipped, applied, strict=False):
        if (ours.number, ours.sha256) != (theirs.version, theirs.sha256):
            raise MigrationChanged(
                f"{theirs.version:04}_{theirs.name}", applied=theirs.sha256, shipped=ours.sha256
            )
    return tuple(shipped[len(applied) :])
