"""Compares roles of the target server with those of the source.

A role that the target already had keeps its own settings. A setting may confine a role, for
instance to one tenant. So a role becomes a member only if no role gets more access than at the
source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, LiteralString

from psycopg import sql

from trunkline.backup.archive import Manifest
from trunkline.backup.catalog import Connection, major

__all__ = ["Compared"]

_SETTINGS: Final[LiteralString] = """
select r.rolname, s.setdatabase <> 0, split_part(c.entry, '=', 1),
  substr(c.entry, strpos(c.entry, '=') + 1)
from pg_db_role_setting as s
join pg_roles as r on r.oid = s.setrole
cross join unnest(s.setconfig) as c (entry)
where s.setdatabase = 0
  or s.setdatabase = (select d.oid from pg_database as d where d.datname = current_database())
"""
_MEMBERSHIP: Final[LiteralString] = """
select bool_or(a.admin_option),
  bool_or(coalesce((to_jsonb(a) ->> 'inherit_option')::boolean, m.rolinherit)),
  bool_or(coalesce((to_jsonb(a) ->> 'set_option')::boolean, true))
from pg_auth_members as a
join pg_roles as g on g.oid = a.roleid
join pg_roles as m on m.oid = a.member
where g.rolname = %s and m.rolname = %s
"""
# Roles that would also get the membership. A superuser and the restoring role do not need it.
_USERS: Final[LiteralString] = """
select r.rolname
from pg_roles as r
where not r.rolsuper and r.rolname not in (%(role)s, current_user)
  and (pg_has_role(r.oid, %(role)s, 'usage') or pg_has_role(r.oid, %(role)s, %(right)s))
order by 1
"""
# PostgreSQL stores the values of these settings as quoted lists.
_LISTS: Final = frozenset(
    {"local_preload_libraries", "search_path", "session_preload_libraries", "temp_tablespaces"}
)


class Compared:
    """Compares the roles of the target with those of the source."""

    def __init__(self, connection: Connection, manifest: Manifest) -> None:
        self._connection = connection
        self._memberships = manifest.memberships
        self._there = _effective(
            (one["role"], one["in_database"], one["name"], one["value"])
            for one in manifest.settings
        )
        self._here = _effective(connection.execute(_SETTINGS))

    def has(self, membership: dict[str, Any]) -> bool:
        """Return whether the membership exists, with at least these options."""
        row = self._connection.execute(
            _MEMBERSHIP, (membership["role"], membership["member"])
        ).fetchone()
        found = row or (None, None, None)
        wanted = (membership[name] for name in ("admin", "inherit", "set"))
        return found[0] is not None and all(
            here or not there for here, there in zip(found, wanted, strict=True)
        )

    def obstacle(self, member: str) -> str | None:
        """Return why a role should not become a member, with the statements to run first."""
        for role in (member, *self._users(member)):
            if role != member and role not in self._members(member):
                return f"role {role} would also get it, but did not have it in the backup"
            if missing := [*self._missing(role)]:
                return (
                    f"the settings of role {role} differ from the backup; if it is the same role, "
                    f"run this first: {'; '.join(missing)}"
                )
        return None

    def _users(self, role: str) -> list[str]:
        right = "set" if major(self._connection) >= 16 else "member"
        rows = self._connection.execute(_USERS, {"role": role, "right": right})
        return [name for (name,) in rows]

    def _members(self, role: str) -> set[str]:
        """Return the direct and indirect members of a role at the source."""
        found: set[str] = set()
        pending = [role]
        while pending:
            of = pending.pop()
            direct = {one["member"] for one in self._memberships if one["role"] == of} - found
            found |= direct
            pending += direct
        return found

    def _missing(self, role: str) -> Iterator[str]:
        here = self._here.get(role, {})
        for name, value in self._there.get(role, {}).items():
            if here.get(name) != value:
                parts = sql.SQL(".").join(map(sql.Identifier, name.split(".")))
                shown = value if name in _LISTS else sql.Literal(value).as_string(self._connection)
                text = sql.SQL("alter role {} set {} = ").format(sql.Identifier(role), parts)
                yield text.as_string(self._connection) + shown


def _effective(rows: Iterable[tuple[Any, ...]]) -> dict[str, dict[str, str]]:
    """Return the settings by role; a setting for the database takes precedence."""
    found: dict[str, dict[str, str]] = {}
    for role, _, name, value in sorted((row for row in rows if row[0]), key=lambda row: row[1]):
        found.setdefault(role, {})[name] = value
    return found
