"""``trunkline schema uninstall``: removes both schemas, and roles that nothing else uses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import psycopg
from psycopg import sql

from trunkline.errors import SchemaInUse, SchemaMissing
from trunkline.schema import plan
from trunkline.schema.dependants import dependants
from trunkline.schema.plan import LOCK_TIMEOUT, Step
from trunkline.schema.session import Connection, connect, run

__all__ = ["ROLES", "UninstallReport", "uninstall"]

# The owner comes last, because its objects must be dropped first.
ROLES: Final = (
    "trunkline_reader",
    "trunkline_operator",
    "trunkline_worker",
    "trunkline_producer",
    "trunkline_owner",
)
_DROP_SCHEMAS: Final = Step(
    "schemas",
    """\
set local role trunkline_owner;
drop schema if exists trunkline cascade;
drop schema if exists trunkline_internal cascade;
""",
)
_OTHER_DATABASES: Final = """
select distinct d.datname
from pg_shdepend as s
join pg_roles as r on r.oid = s.refobjid
join pg_database as d on d.oid = s.dbid
where s.refclassid = 'pg_authid'::regclass and r.rolname = any (%s)
  and d.datname <> current_database()
order by 1
"""
# Default privileges count as owned objects. The owner should own nothing else outside the schemas.
_OWNED_ELSEWHERE: Final = """
select count(*)
from pg_shdepend as s
join pg_roles as r on r.oid = s.refobjid
where s.refclassid = 'pg_authid'::regclass and r.rolname = 'trunkline_owner'
  and s.dbid = (select d.oid from pg_database as d where d.datname = current_database())
  and s.deptype = 'o' and s.classid <> 'pg_default_acl'::regclass
"""


@dataclass(frozen=True, slots=True)
class UninstallReport:
    """The objects and roles that were removed, and the reasons for keeping roles."""

    # User objects that were dropped with the schemas, and profiles that no longer work.
    dropped_dependants: tuple[str, ...] = ()
    dropped_roles: tuple[str, ...] = ()
    kept_roles: dict[str, str] = field(default_factory=dict)


def uninstall(
    dsn: str,
    *,
    drop_roles: bool = True,
    cascade: bool = False,
    lock_timeout: float = LOCK_TIMEOUT,
) -> UninstallReport:
    """Drop both schemas with all jobs in them.

    Raises SchemaInUse while your objects or profiles depend on the schemas. With ``cascade`` these
    objects are dropped as well, and profiles stop working until they are installed again. Roles
    belong to the whole server, so they are kept while another database uses one of them.
    """
    with connect(dsn) as connection:
        run(connection, plan.session(lock_timeout))
        if not _is_there(connection):
            raise SchemaMissing("This database has no Trunkline schema")
        lost = tuple(dependants(connection))
        if lost and not cascade:
            raise SchemaInUse(f"The schema is used by {', '.join(lost)}")
        installer = _current_user(connection)
        run(connection, plan.lock())
        run(connection, _DROP_SCHEMAS)
        _drop_default_privileges(connection)
        # The installer created the roles and drops them. The owner is one of them.
        connection.execute(sql.SQL("set local role {}").format(sql.Identifier(installer)))
        if not drop_roles:
            kept = dict.fromkeys(_existing(connection), "as asked")
            return UninstallReport(lost, kept_roles=kept)
        return replace(_drop_roles(connection), dropped_dependants=lost)


def _is_there(connection: Connection) -> bool:
    row = connection.execute(
        "select to_regnamespace('trunkline') is not null"
        " or to_regnamespace('trunkline_internal') is not null"
    ).fetchone()
    return row is not None and bool(row[0])


def _current_user(connection: Connection) -> str:
    row = connection.execute("select current_user").fetchone()
    return str(row[0]) if row else ""


def _existing(connection: Connection) -> tuple[str, ...]:
    rows = connection.execute(
        "select r.rolname from pg_roles as r where r.rolname = any (%s)", (list(ROLES),)
    )
    present = {name for (name,) in rows}
    return tuple(role for role in ROLES if role in present)


def _drop_default_privileges(connection: Connection) -> None:
    row = connection.execute(_OWNED_ELSEWHERE).fetchone()
    if row is not None and row[0] == 0:
        run(connection, Step("default privileges", "drop owned by trunkline_owner;\n"))


def _drop_roles(connection: Connection) -> UninstallReport:
    present = _existing(connection)
    others = [name for (name,) in connection.execute(_OTHER_DATABASES, (list(ROLES),))]
    if others:
        reason = "used in " + ", ".join(others)
        return UninstallReport(kept_roles=dict.fromkeys(present, reason))
    dropped = []
    kept = {}
    for role in present:
        try:
            with connection.transaction():
                connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
            dropped.append(role)
        except psycopg.errors.DependentObjectsStillExist as error:
            kept[role] = error.diag.message_detail or str(error)
        except psycopg.errors.InsufficientPrivilege as error:
            kept[role] = error.diag.message_primary or str(error)
    return UninstallReport(dropped_roles=tuple(dropped), kept_roles=kept)
