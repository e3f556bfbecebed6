"""An engine of a few statements, for breaking in ways the shipped one must never be."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from trunkline import sql

HEADER = "-- why: a test\n-- breaking: no\n"

FOUNDATION = (
    HEADER
    + """
create table trunkline_internal.schema_migrations (
  version integer primary key,
  name text not null,
  sha256 text not null,
  breaking boolean not null,
  applied_at timestamptz not null default clock_timestamp(),
  applied_by text not null default session_user
);
create table trunkline_internal.things (thing text primary key);
"""
)
SECOND = HEADER + "alter table trunkline_internal.things add column size integer;\n"


def engine(folder: Path, migrations: Mapping[str, str]) -> Path:
    """Write an engine with the shipped roles, the given migrations and nothing else."""
    for name, text in migrations.items():
        path = folder / "migrations" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    security = folder / "security"
    security.mkdir(exist_ok=True)
    (security / "roles.sql").write_text(sql.roles_sql(), encoding="utf-8")
    (security / "grants.sql").write_text("-- nothing to grant\n", encoding="utf-8")
    return folder
