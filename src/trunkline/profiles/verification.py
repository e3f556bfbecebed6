"""Compares installed profiles with their shipped catalogues, as `schema.verify` does the engine."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, LiteralString

from trunkline.errors import ProfileError
from trunkline.profiles import objects, registry
from trunkline.profiles.profile import Profile, statement
from trunkline.profiles.sessions import SQL
from trunkline.schema import catalog
from trunkline.schema.catalog import Attributes, Catalog
from trunkline.schema.difference import Difference
from trunkline.schema.session import Connection, connect
from trunkline.schema.verify import compare

__all__ = ["PACKAGE", "catalogue", "verify"]

# The kind of a difference if a profile is installed in the database and not in Python.
PACKAGE: Final = "package"

_SCHEMAS: Final[LiteralString] = """
select n.nspname,
  has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select'),
  n.nspowner = c.relowner
from pg_class as c
join pg_namespace as n on n.oid = c.relnamespace
where c.relname = 'trunkline_profile_steps' and c.relowner = (
  select r.oid from pg_roles as r where r.rolname = 'trunkline_owner')
order by 1
"""
_KINDS: Final = (
    *("table", "column", "constraint", "index", "sequence", "function", "view"),
    *("trigger", "rule", "policy", "grant"),
)
_CATALOGUE: Final = "catalog.json"
_RECORD: Final = "table trunkline_profile_steps"
# Roles of a platform: a profile is open to them only if they existed when it was installed.
_PLATFORM: Final = frozenset({"anon", "authenticated", "service_role"})
_GRANT: Final = re.compile(r"\w+ on (?P<kind>\w+) (?P<object>.+) to (?P<role>[^ ]+)")
_EXECUTED: Final = re.compile(r" EXECUTE FUNCTION [^.]+\.(?P<function>[^(]+)\(")
_INDEXED: Final = re.compile(r" ON (?:ONLY )?(?P<table>[^ ]+) USING ")


def verify(dsn: str) -> list[Difference]:
    """Return the differences of all installed profiles, in any schema.

    A profile whose package is missing or broken cannot be compared, which is a difference too.
    Only operators and readers can see which scripts were applied. For other roles, this checks
    only row security, grants to PUBLIC and the right to write.
    """
    with connect(dsn) as connection:
        connection.execute("set transaction isolation level repeatable read, read only")
        rows = connection.execute(_SCHEMAS).fetchall()
        return [
            difference
            for schema, readable, ours in rows
            for difference in _differences(connection, schema, readable=readable, ours=ours)
        ]


def catalogue(dsn: str, profile: Profile, *, schema: str | None = None) -> str:
    """Return the text for ``catalog.json`` of a profile, read from a database that has it.

    `trunkline schema verify` compares databases with the file that the profile ships. Without one
    it checks only row security and grants.
    """
    with connect(dsn) as connection:
        return catalog.dump(_read(connection, profile, schema or profile.schema))


def _read(connection: Connection, profile: Profile, schema: str) -> Catalog:
    """Read the live catalogue of a profile's schema, spelled as in its own."""
    return catalog.read(connection, [schema], _KINDS, _spelling(schema, profile.schema))


def _differences(
    connection: Connection, schema: str, *, readable: bool, ours: bool
) -> Iterator[Difference]:
    known: set[str] = set()
    unknown = False
    for name in _recorded(connection, schema) if readable else ():
        try:
            profile = registry.get(name)
        except ProfileError as error:
            unknown = True
            yield Difference("missing", PACKAGE, f"of profile {name}", f"{error}. {error.hint}")
            continue
        if not (profile.root / _CATALOGUE).is_file():
            continue
        created = _created(connection, profile, schema)
        known |= created
        actual = _read(connection, profile, schema)
        expected = _expected(profile, actual, created)
        # A schema that belongs to the user may be open to others.
        wholes = created | ({f"schema {profile.schema}"} if ours else set())
        back = _spelling(profile.schema, schema)
        for difference in compare(expected, _part(actual, wholes)):
            grants = profile.optional_grants if difference.change == "extra" else ()
            if not (difference.kind == "grant" and difference.name in grants):
                yield replace(difference, name=back(difference.name))
    # Which grants a profile means to give is only known from its package.
    if not unknown:
        yield from objects.flaws(connection, schema, frozenset(known))


def _recorded(connection: Connection, schema: str) -> list[str]:
    query = statement(SQL, "recorded", schema).encode()
    return [name for (name,) in connection.execute(query)]


def _created(connection: Connection, profile: Profile, schema: str) -> set[str]:
    """Return what the applied scripts of a profile create, such as ``view job_queue``."""
    query = statement(SQL, "applied", schema).encode()
    rows = connection.execute(query, {"profile": profile.name}).fetchall()
    applied = {(phase, script) for phase, script, _ in rows}
    created = {
        item
        for phase in profile.phases
        for script in profile.scripts(phase)
        if (phase.name, script.name) in applied
        for item in objects.declared(script)
    }
    return created | {_RECORD} if applied else set()


def _expected(profile: Profile, actual: Catalog, created: set[str]) -> Catalog:
    shipped = catalog.parse(profile.text(_CATALOGUE))
    grantees = {_role(grant) for grant in actual["grant"]}
    absent = _PLATFORM - grantees
    part = _part(shipped, created | {f"schema {profile.schema}"})
    part["grant"] = {
        name: grant for name, grant in part["grant"].items() if _role(name) not in absent
    }
    # A script may put a trigger on a table of another one.
    part["trigger"] = {
        name: trigger
        for name, trigger in part["trigger"].items()
        if (executed := _EXECUTED.search(trigger["definition"])) is None
        or f"function {executed['function']}" in created
    }
    part["policy"] = {
        name: policy
        for name, policy in part["policy"].items()
        if not absent.issuperset(policy.get("roles", ["public"]))
    }
    return part


def _part(whole: Catalog, wanted: set[str]) -> Catalog:
    """Return the objects in ``wanted`` with their columns, indexes, grants and so on."""
    return {
        kind: {
            name: attributes
            for name, attributes in items.items()
            if not wanted.isdisjoint(_wholes(whole, kind, name, attributes))
        }
        for kind, items in whole.items()
    }


def _wholes(whole: Catalog, kind: str, name: str, attributes: Attributes) -> tuple[str, ...]:
    """Return the names, as `objects.declared` has them, of what an entry may belong to."""
    if kind == "grant" and (granted := _GRANT.fullmatch(name)):
        kind, name = granted["kind"], granted["object"]
    if kind == "schema":
        return (f"schema {name}",)
    if kind == "index" and (indexed := _INDEXED.search(attributes["definition"])):
        name = indexed["table"]
    if kind == "sequence":
        # The profiles' sequences belong to identity columns.
        name = whole["sequence"].get(name, {}).get("owned by", name)
    thing = name.partition("(")[0].split(".")[1]
    return (f"function {thing}",) if kind == "function" else (f"table {thing}", f"view {thing}")


def _role(grant: str) -> str | None:
    granted = _GRANT.fullmatch(grant)
    return granted["role"] if granted else None


def _spelling(schema: str, other: str) -> Callable[[str], str]:
    """Return a function that puts the name of another schema in the place of one."""
    if schema == other:
        return str
    quoted = f'"{schema}"'
    qualifier = re.compile(rf'(?<![\w."])(?:{quoted}|{schema})\.(?=[a-z_"])')
    named = re.compile(rf"\b(schema(?: if (?:not )?exists)?) (?:{quoted}|\b{schema}\b)")

    def spell(text: str) -> str:
        text = named.sub(rf"\1 {other}", qualifier.sub(f"{other}.", text))
        return text.replace(f"'{quoted}'", f"'{other}'")

    return spell
