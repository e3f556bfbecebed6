"""The contents of a database: row counts, extensions, owners, and rows that policies hide."""

from __future__ import annotations

from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

__all__ = ["Connection", "contents", "count_rows", "extensions", "hidden", "major", "owners"]

Connection = psycopg.Connection[tuple[Any, ...]]

# Objects that belong to extensions are created with the extension.
_OWN: Final[LiteralString] = """
not exists (
  select from pg_depend as e
  where e.classid = {catalog}::regclass and e.objid = {oid} and e.deptype = 'e'
)
"""
_SPACES: Final[LiteralString] = """
with spaces as (
  select n.oid, n.nspname from pg_namespace as n
  where n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
)
"""
# A partitioned table includes its partitions. Foreign tables store no rows here.
_TABLES: Final[LiteralString] = (
    _SPACES
    + """
select s.nspname, c.relname
from pg_class as c join spaces as s on s.oid = c.relnamespace
where c.relkind in ('r', 'p') and not c.relispartition and """
    + _OWN.replace("{catalog}", "'pg_class'").replace("{oid}", "c.oid")
    + "order by 1, 2"
)
_EXTENSIONS: Final[LiteralString] = "select e.extname from pg_extension as e order by 1"
_OWNERS: Final[LiteralString] = """
select distinct pg_get_userbyid(o.owner)
from (
  select n.nspowner as owner from pg_namespace as n where n.oid >= 16384
  union all
  select c.relowner from pg_class as c where c.oid >= 16384
  union all
  select p.proowner from pg_proc as p where p.oid >= 16384
  union all
  select t.typowner from pg_type as t where t.oid >= 16384
) as o
order by 1
"""
# A role sees every row if an always-true permissive policy covers it and no policy restricts it.
# Each partition is checked separately, because pg_dump reads it directly.
_HIDDEN: Final[LiteralString] = (
    _SPACES  # noqa: S608 - constants alone
    + """
, policies as (
  select p.polrelid, p.polpermissive, pg_get_expr(p.polqual, p.polrelid) = 'true' as everything
  from pg_policy as p
  where p.polcmd in ('*', 'r')
    and (
      0 = any (p.polroles)
      or exists (select from unnest(p.polroles) as r (role) where pg_has_role(r.role, 'usage'))
    )
)
select format('%I.%I', s.nspname, c.relname)
from pg_class as c join spaces as s on s.oid = c.relnamespace
where c.relkind in ('r', 'p') and row_security_active(c.oid)
  and (
    not exists (
      select from policies as p where p.polrelid = c.oid and p.polpermissive and p.everything)
    or exists (select from policies as p where p.polrelid = c.oid and not p.polpermissive)
  )
order by 1
"""
)
# The schema public may exist; only objects in it count.
_CONTENTS: Final[LiteralString] = (
    _SPACES
    + """
select 'schema ' || quote_ident(s.nspname) from spaces as s where s.nspname <> 'public' and """
    + _OWN.replace("{catalog}", "'pg_namespace'").replace("{oid}", "s.oid")
    + """
union all
select 'relation ' || c.oid::regclass from pg_class as c
where c.relnamespace = to_regnamespace('public') and c.relkind not in ('i', 'I', 't', 'c') and """
    + _OWN.replace("{catalog}", "'pg_class'").replace("{oid}", "c.oid")
    + """
union all
select 'function ' || p.oid::regprocedure from pg_proc as p
where p.pronamespace = to_regnamespace('public') and """
    + _OWN.replace("{catalog}", "'pg_proc'").replace("{oid}", "p.oid")
    + """
union all
select 'type ' || t.oid::regtype from pg_type as t
where t.typnamespace = to_regnamespace('public') and t.typrelid = 0 and t.typelem = 0 and """
    + _OWN.replace("{catalog}", "'pg_type'").replace("{oid}", "t.oid")
    + "order by 1"
)


def major(connection: Connection) -> int:
    """Return the major version of the server."""
    return connection.info.server_version // 10000


def count_rows(connection: Connection) -> dict[str, int]:
    """Count the rows of every table, in the order of their names."""
    counts = {}
    for schema, table in connection.execute(_TABLES).fetchall():
        name = sql.Identifier(schema, table)
        row = connection.execute(sql.SQL("select count(*) from {}").format(name)).fetchone()
        counts[name.as_string(connection).replace('"', "")] = int(row[0]) if row else 0
    return counts


def hidden(connection: Connection) -> list[str]:
    """Return the tables in which row-level security hides rows from this role."""
    return [name for (name,) in connection.execute(_HIDDEN)]


def extensions(connection: Connection) -> tuple[str, ...]:
    """Return the names of the extensions."""
    return tuple(name for (name,) in connection.execute(_EXTENSIONS))


def owners(connection: Connection) -> tuple[str, ...]:
    """Return the roles that own objects."""
    return tuple(name for (name,) in connection.execute(_OWNERS))


def contents(connection: Connection) -> list[str]:
    """Return the objects in the database; a backup can be restored if there are none."""
    return [name for (name,) in connection.execute(_CONTENTS)]
