"""The objects that a profile's scripts create, and those that a database has."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, LiteralString

from trunkline.profiles.profile import Script
from trunkline.schema.difference import Difference
from trunkline.schema.session import Connection

__all__ = ["declared", "flaws", "present"]

# Statements of a script start in the first column; bodies of functions and DO blocks are indented.
_CREATES: Final = re.compile(
    r"^create (?:or replace |constraint |unique )?"
    r"(?P<kind>table|view|function|trigger|policy|index)(?: if not exists)? (?P<name>[\w.]+)",
    re.MULTILINE,
)
_ON: Final = re.compile(r"\bon\s+(?:\w+\.)?(?P<table>\w+)")
_PRESENT: Final[LiteralString] = """
select case c.relkind when 'v' then 'view ' when 'i' then 'index ' else 'table ' end || c.relname
from pg_class as c
where c.relnamespace = to_regnamespace(quote_ident(%(schema)s))
  and c.relkind in ('r', 'p', 'v', 'i')
union
select 'function ' || p.proname
from pg_proc as p where p.pronamespace = to_regnamespace(quote_ident(%(schema)s))
union
select format('trigger %%s on %%s', t.tgname, c.relname)
from pg_trigger as t join pg_class as c on c.oid = t.tgrelid
where c.relnamespace = to_regnamespace(quote_ident(%(schema)s)) and not t.tgisinternal
union
select format('policy %%s on %%s', p.polname, c.relname)
from pg_policy as p join pg_class as c on c.oid = p.polrelid
where c.relnamespace = to_regnamespace(quote_ident(%(schema)s))
"""
# The schema may also contain the user's tables; ours are those that trunkline_owner owns.
_TABLES: Final[LiteralString] = """
select c.relname, c.relrowsecurity, c.relforcerowsecurity
from pg_class as c
where c.relnamespace = to_regnamespace(quote_ident(%(schema)s)) and c.relkind in ('r', 'p')
  and c.relowner = 'trunkline_owner'::regrole
order by 1
"""
# PUBLIC must have no privileges. Roles of a platform or the user may call and read, never write.
_GRANTS: Final[LiteralString] = """
select lower(x.privilege_type), o.object,
  case x.grantee when 0 then 'public' else pg_get_userbyid(x.grantee) end
from (
  select case c.relkind when 'v' then 'view ' when 'S' then 'sequence ' else 'table ' end
    || c.relname as object, c.relowner as owner, c.relacl as acl
  from pg_class as c
  where c.relnamespace = to_regnamespace(quote_ident(%(schema)s))
    and c.relkind in ('r', 'p', 'v', 'S')
  union all
  select 'function ' || p.proname, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner))
  from pg_proc as p where p.pronamespace = to_regnamespace(quote_ident(%(schema)s))
) as o
cross join aclexplode(o.acl) as x
where o.owner = 'trunkline_owner'::regrole and x.grantee <> o.owner
  and (
    x.grantee = 0
    or x.privilege_type not in ('SELECT', 'EXECUTE', 'USAGE')
      and pg_get_userbyid(x.grantee) !~ '^trunkline_'
  )
order by 2, 1, 3
"""


def declared(script: Script) -> frozenset[str]:
    """Return the objects that exist after a script, such as ``view job_queue``, without schema."""
    return frozenset(_created(script.text))


def _created(text: str) -> Iterator[str]:
    for statement in _CREATES.finditer(text):
        kind, name = statement["kind"], statement["name"].rpartition(".")[2]
        if kind in {"trigger", "policy"}:
            table = _ON.search(text, statement.end())
            name += f" on {table['table']}" if table else ""
        yield f"{kind} {name}"


def present(connection: Connection, schema: str) -> frozenset[str]:
    """Return the objects of a schema in the same form."""
    return frozenset(name for (name,) in connection.execute(_PRESENT, {"schema": schema}))


def flaws(connection: Connection, schema: str, known: frozenset[str]) -> Iterator[Difference]:
    """Return deviations in row security and grants of objects that are not ``known``."""
    named = {"schema": schema}
    for name, enabled, forced in connection.execute(_TABLES, named):
        missing = [
            f"{what} is not set, should be set"
            for what, is_set in (("row security", enabled), ("forced row security", forced))
            if not is_set
        ]
        if missing and f"table {name}" not in known:
            yield Difference("changed", "table", f"{schema}.{name}", ", ".join(missing))
    for right, found, grantee in connection.execute(_GRANTS, named):
        if found not in known:
            kind, _, name = found.partition(" ")
            yield Difference("extra", "grant", f"{right} on {kind} {schema}.{name} to {grantee}")
