"""Checks of `verify` for objects without a fixed name: daily partitions and role members."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, LiteralString

from trunkline.schema.difference import Difference
from trunkline.schema.session import Connection

__all__ = ["check"]

# A query through the parent uses the parent's policies; a direct query uses the partition's own.
_PARTITIONS: Final[LiteralString] = """
select format('%I.%I', n.nspname, c.relname), pg_get_userbyid(c.relowner),
  c.relrowsecurity, c.relforcerowsecurity,
  array(select p.polname from pg_policy as p where p.polrelid = c.oid order by 1)
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = 'trunkline_internal' and c.relkind in ('r', 'p') and c.relispartition
  and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
order by 1
"""
# Roles that are direct or indirect members of one of our roles.
_REACHES: Final[LiteralString] = """
with recursive reaches (role, member) as (
  select g.rolname, a.member
  from pg_roles as g join pg_auth_members as a on a.roleid = g.oid
  where g.rolname in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
    'trunkline_operator', 'trunkline_reader')
  union
  select r.role, a.member from reaches as r join pg_auth_members as a on a.roleid = r.member
)
select m.rolname, r.role
from reaches as r join pg_roles as m on m.oid = r.member
"""
_OWNERS: Final[LiteralString] = (
    _REACHES
    + """
where r.role = 'trunkline_owner' and m.rolcanlogin and not m.rolsuper
order by 1
"""
)
# A tenant role is one with the grants of `schema install --tenant-role`.
_TENANTS: Final[LiteralString] = (
    _REACHES
    + """
where not m.rolsuper and exists (
  select
  from pg_proc as p
  cross join aclexplode(p.proacl) as x
  where p.pronamespace = to_regnamespace('trunkline') and p.proname = 'tenant_scope'
    and x.grantee = m.oid and x.privilege_type = 'EXECUTE'
)
and m.rolname not in ('trunkline_owner', 'trunkline_producer', 'trunkline_worker',
  'trunkline_operator', 'trunkline_reader')
order by 1, 2
"""
)
_INSTALLERS: Final[LiteralString] = "select i.role from trunkline_internal.installers as i"
_READABLE: Final[LiteralString] = """
select coalesce(has_schema_privilege(c.relnamespace, 'usage')
  and has_table_privilege(c.oid, 'select'), false)
from pg_class as c
where c.relname = 'installers' and c.relnamespace = to_regnamespace('trunkline_internal')
"""


def check(connection: Connection) -> list[Difference]:
    """Return partitions and role memberships that give more access than they should.

    Only members of trunkline_owner can read the installers, so only they receive logins that should
    not be members of that role.
    """
    return [*_partitions(connection), *_owners(connection), *_tenants(connection)]


def _partitions(connection: Connection) -> Iterator[Difference]:
    for name, owner, enabled, forced, policies in connection.execute(_PARTITIONS):
        flaws = []
        if owner != "trunkline_owner":
            flaws.append(f"owner is {owner!r}, should be 'trunkline_owner'")
        if not enabled:
            flaws.append("row security is not set, should be set")
        if not forced:
            flaws.append("forced row security is not set, should be set")
        if policies != ["owner_rows"]:
            flaws.append(f"policies are {policies}, should be ['owner_rows']")
        if flaws:
            yield Difference("changed", "partition", name, ", ".join(flaws))


def _owners(connection: Connection) -> Iterator[Difference]:
    readable = connection.execute(_READABLE).fetchone()
    if readable is None or not readable[0]:
        return
    recorded = _names(connection.execute(_INSTALLERS))
    for name, role in connection.execute(_OWNERS):
        if name not in recorded:
            yield Difference(
                "extra",
                "membership",
                f"{name} in {role}",
                "this login can read and change everything, but did not install the schema",
            )


def _tenants(connection: Connection) -> Iterator[Difference]:
    for name, role in connection.execute(_TENANTS):
        yield Difference(
            "extra", "membership", f"{name} in {role}", "this tenant role acts for all tenants"
        )


def _names(rows: Any) -> set[str]:
    return {name for (name,) in rows}
