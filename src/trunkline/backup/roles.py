"""The roles that a database needs. They belong to the server, so a dump lacks them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, LiteralString, TypeAlias

import psycopg
from psycopg import sql

from trunkline.backup.archive import Manifest
from trunkline.backup.catalog import Connection, major
from trunkline.backup.compared import Compared

__all__ = [
    "Outcome",
    "adopt_installer",
    "create",
    "drop",
    "finish",
    "grants",
    "memberships",
    "roles",
    "settings",
]

Facts: TypeAlias = dict[str, Any]

# Roles that own something here or have privileges on it, and their direct and indirect members.
# Other attributes are not saved: only a superuser may create a superuser.
_RELATED: Final[LiteralString] = """
with recursive related as (
  select r.oid from pg_roles as r where r.rolname like 'trunkline\\_%%'
    and r.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
      'trunkline_operator', 'trunkline_reader')
  union
  select u.oid
  from (
    select d.datdba as oid from pg_database as d where d.datname = current_database()
    union all
    select s.refobjid
    from pg_shdepend as s join pg_database as d on d.datname = current_database()
    where s.refclassid = 'pg_authid'::regclass
      and (s.dbid = d.oid or s.classid = 'pg_database'::regclass and s.objid = d.oid)
    union all
    select r.oid from pg_roles as r where r.rolname = any (%(owners)s)
  ) as u
  union
  select a.member from pg_auth_members as a join related as o on o.oid = a.roleid
),
needed as (
  select r.* from pg_roles as r join related as o on o.oid = r.oid where r.rolname !~ '^pg_'
)
"""
_ROLES: Final[LiteralString] = (
    _RELATED
    + """
select n.rolname, n.rolcanlogin, n.rolinherit,
  array_remove(array[
    case when n.rolsuper then 'superuser' end,
    case when n.rolbypassrls then 'bypassrls' end,
    case when n.rolcreaterole then 'createrole' end,
    case when n.rolcreatedb then 'createdb' end,
    case when n.rolreplication then 'replication' end
  ], null)
from needed as n
order by 1
"""
)
# Merges grants by several grantors. PostgreSQL 15 uses the member's INHERIT attribute instead.
_MEMBERSHIPS: Final[LiteralString] = (
    _RELATED
    + """
select g.rolname, m.rolname, bool_or(a.admin_option),
  bool_or(coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit)),
  bool_or(coalesce((to_jsonb(a) ->> 'set_option')::boolean, true))
from pg_auth_members as a
join needed as g on g.oid = a.roleid
join needed as m on m.oid = a.member
group by 1, 2
order by 1, 2
"""
)
_SETTINGS: Final[LiteralString] = (
    _RELATED  # noqa: S608 - constants alone
    + """
select n.rolname, s.setdatabase <> 0, split_part(c.entry, '=', 1),
  substr(c.entry, strpos(c.entry, '=') + 1)
from pg_db_role_setting as s
left join needed as n on n.oid = s.setrole
cross join unnest(s.setconfig) as c (entry)
where (s.setrole = 0 or n.oid is not null)
  and (s.setdatabase = 0 and s.setrole <> 0
    or s.setdatabase = (select d.oid from pg_database as d where d.datname = current_database()))
order by 1 nulls first, 2, 3
"""
)
_GRANTS: Final[LiteralString] = """
select case x.grantee when 0 then null else pg_get_userbyid(x.grantee) end,
  lower(x.privilege_type), x.is_grantable
from pg_database as d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) as x
where d.datname = current_database() and x.grantee <> d.datdba
order by 1 nulls first, 2
"""
_KNOWN: Final[LiteralString] = "select r.rolname from pg_roles as r"


@dataclass(slots=True)
class Outcome:
    """The result for the roles."""

    created: list[str] = field(default_factory=list)
    # The created roles that could log in at the source. They cannot log in here yet.
    logins: list[str] = field(default_factory=list)
    # Steps left to an administrator.
    notes: list[str] = field(default_factory=list)


def roles(connection: Connection, owners: tuple[str, ...]) -> tuple[Facts, ...]:
    """Return the roles that the database needs. Passwords are not read."""
    rows = connection.execute(_ROLES, {"owners": list(owners)})
    return _facts(rows, "role", "login", "inherit", "attributes")


def memberships(connection: Connection, owners: tuple[str, ...]) -> tuple[Facts, ...]:
    """Return the memberships among these roles."""
    rows = connection.execute(_MEMBERSHIPS, {"owners": list(owners)})
    return _facts(rows, "role", "member", "admin", "inherit", "set")


def settings(connection: Connection, owners: tuple[str, ...]) -> tuple[Facts, ...]:
    """Return the settings made with ALTER ROLE and ALTER DATABASE."""
    rows = connection.execute(_SETTINGS, {"owners": list(owners)})
    return _facts(rows, "role", "in_database", "name", "value")


def grants(connection: Connection) -> tuple[Facts, ...]:
    """Return the privileges on the database itself."""
    return _facts(connection.execute(_GRANTS), "role", "right", "grantable")


def _facts(rows: Iterable[tuple[Any, ...]], *names: str) -> tuple[Facts, ...]:
    return tuple(dict(zip(names, row, strict=True)) for row in rows)


def create(connection: Connection, manifest: Manifest) -> Outcome:
    """Create the roles that are missing, without a login. `finish` makes them members.

    The connection commits each statement by itself.
    """
    outcome = Outcome()
    known = {name for (name,) in connection.execute(_KNOWN)}
    for role in manifest.roles:
        name = role["role"]
        if name in known:
            continue
        inherit = sql.SQL("inherit" if role["inherit"] else "noinherit")
        connection.execute(
            sql.SQL("create role {} nologin {}").format(sql.Identifier(name), inherit)
        )
        outcome.created.append(name)
        if role["login"]:
            outcome.logins.append(name)
        if role["attributes"]:
            rights = " ".join(role["attributes"])
            outcome.notes.append(
                f"role {name} had {rights}; to restore that, run: alter role {name} {rights}"
            )
    return outcome


def finish(connection: Connection, manifest: Manifest, outcome: Outcome) -> None:
    """Apply the settings of the database and of the created roles, then grant memberships.

    Memberships come last, so that a failed restore does not change existing roles, and settings
    that confine a role are in effect before it becomes a member.
    """
    database = sql.Identifier(connection.info.dbname)
    for grant in manifest.grants:
        grantee = sql.SQL("public") if grant["role"] is None else sql.Identifier(grant["role"])
        option = sql.SQL(" with grant option" if grant["grantable"] else "")
        statement = sql.SQL("grant {} on database {} to {}{}").format(
            sql.SQL(grant["right"]), database, grantee, option
        )
        _try(connection, statement, outcome)
    public = {grant["right"] for grant in manifest.grants if grant["role"] is None}
    for right in ("connect", "temporary"):
        if right not in public:
            statement = sql.SQL("revoke {} on database {} from public").format(
                sql.SQL(right), database
            )
            _try(connection, statement, outcome)
    for setting in manifest.settings:
        if setting["in_database"] or setting["role"] in outcome.created:
            _apply(connection, setting, database, outcome)
    compared = Compared(connection, manifest)
    for membership in manifest.memberships:
        if compared.has(membership):
            continue
        statement = _grant_role(connection, membership)
        if obstacle := compared.obstacle(membership["member"]):
            outcome.notes.append(f"{statement.as_string(connection)}: {obstacle}")
        else:
            _try(connection, statement, outcome)


def drop(connection: Connection, outcome: Outcome) -> None:
    """Drop the roles that `create` created, after a failed restore."""
    for name in reversed(outcome.created):
        _try(connection, sql.SQL("drop role {}").format(sql.Identifier(name)), outcome)


def adopt_installer(connection: Connection, installer: str | None) -> None:
    """Let a role maintain the schema, as after an installation, and record it as an installer."""
    row = connection.execute(
        "select r.rolname, r.rolsuper or pg_has_role(r.oid, 'trunkline_owner', 'usage')"
        " from pg_roles as r where r.rolname = coalesce(%s, current_user)",
        (installer,),
    ).fetchone()
    name, member = row or (installer or "", False)
    if not member:
        options = " with inherit true, set true" if major(connection) >= 16 else ""
        connection.execute(
            sql.SQL("grant trunkline_owner to {}{}").format(sql.Identifier(name), sql.SQL(options))
        )
    connection.execute("set local role trunkline_owner")
    connection.execute(
        "insert into trunkline_internal.installers (role) values (%s) on conflict do nothing",
        (name,),
    )


def _grant_role(connection: Connection, membership: Facts) -> sql.Composed:
    # The creator of a role already has the admin option and cannot grant it to itself.
    admin = membership["admin"] and membership["member"] != connection.info.user
    options = [f"admin {str(admin).lower()}"]
    if major(connection) >= 16:
        options += [f"{name} {str(membership[name]).lower()}" for name in ("inherit", "set")]
        tail = " with " + ", ".join(options)
    else:
        tail = " with admin option" if admin else ""
    return sql.SQL("grant {} to {}{}").format(
        sql.Identifier(membership["role"]), sql.Identifier(membership["member"]), sql.SQL(tail)
    )


def _apply(
    connection: Connection, setting: Facts, database: sql.Identifier, outcome: Outcome
) -> None:
    """Attach a setting. FROM CURRENT copies lists such as search_path unchanged."""
    if setting["role"] is None:
        owner = sql.SQL("database {}").format(database)
    else:
        owner = sql.SQL("role {}").format(sql.Identifier(setting["role"]))
        if setting["in_database"]:
            owner += sql.SQL(" in database {}").format(database)
    name = sql.SQL(".").join(map(sql.Identifier, setting["name"].split(".")))
    try:
        with connection.transaction():
            connection.execute(
                "select set_config(%s, %s, true)", (setting["name"], setting["value"])
            )
            connection.execute(sql.SQL("alter {} set {} from current").format(owner, name))
    except psycopg.DatabaseError as error:
        text = owner.as_string(connection)
        outcome.notes.append(f"{text} set {setting['name']}: {_reason(error)}")


def _try(connection: Connection, statement: sql.Composed, outcome: Outcome) -> None:
    try:
        connection.execute(statement)
    except psycopg.DatabaseError as error:
        outcome.notes.append(f"{statement.as_string(connection)}: {_reason(error)}")


def _reason(error: psycopg.DatabaseError) -> str:
    return error.diag.message_primary or str(error).strip()
