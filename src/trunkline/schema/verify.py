"""``trunkline schema verify``: lists differences between a database and the shipped schema."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.resources.abc import Traversable

import psycopg

from trunkline import sql
from trunkline.errors import SchemaMissing
from trunkline.schema import catalog, tenants, walls
from trunkline.schema.catalog import Attributes, Catalog
from trunkline.schema.contract import require_baseline
from trunkline.schema.difference import Difference
from trunkline.schema.session import Connection, connect, lift_timeouts

__all__ = ["Difference", "compare", "verify"]

_FUNCTION = re.compile(r"(?P<name>[a-z0-9_\"]+\.[a-z0-9_]+)\([^()]*\)")
_GRANTED = re.compile(r"\w+ on (?P<kind>\w+) (?P<object>.+) to [^ ]+")
_TENANT_GRANT = re.compile(
    r"(?P<right>\w+) on (?P<kind>\w+) (?P<object>[^ ]+) to (?!public$|trunkline_)"
)
# These are named after the object that they belong to, and dropped with it.
_PARTS = ("column", "constraint", "trigger", "rule", "policy")
_WHOLES = ("table", "view", "type", "default partition")
_GRANTABLE = ("table", "view", "function", "sequence")
# Too long to print, and not useful to a reader.
_OPAQUE = ("body", "query", "sha256")


def verify(dsn: str, *, root: Traversable | None = None) -> list[Difference]:
    """Compare a database with the shipped catalogue; an empty list means that they are equal.

    Any role can call it. Only the installer or another member of trunkline_owner receives
    differences in migrations and in the members of that role. A schema from before the baseline is
    refused instead of compared.
    """
    expected = catalog.parse(sql.catalog_json(root))
    with connect(dsn) as connection:
        connection.rollback()
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        lift_timeouts(connection)
        connection.execute("set local row_security = on")
        _require_baseline(connection)
        actual = catalog.read(connection)
        open_walls = walls.check(connection) if root is None else []
    if not actual["schema"]:
        raise SchemaMissing("This database has no Trunkline schema")
    if "migration" not in actual:
        del expected["migration"]
    return [*compare(expected, actual), *open_walls]


def _require_baseline(connection: Connection) -> None:
    """Refuse a schema from before the baseline, if this role may call schema_version."""
    row = None
    # The function may be broken or missing. Verify then reports that as a difference.
    with suppress(psycopg.Error), connection.transaction():
        row = connection.execute(
            "select v.contract from trunkline.schema_version() as v"
        ).fetchone()
    if row is not None:
        require_baseline(row[0])


def compare(expected: Catalog, actual: Catalog) -> list[Difference]:
    """Return the differences, sorted by kind and name."""
    expected, actual = _with_short_names(*_with_one_fingerprint(expected, actual))
    found = [
        difference
        for kind in sorted(expected.keys() | actual.keys())
        for difference in _compare_kind(kind, expected.get(kind, {}), actual.get(kind, {}))
    ]
    gone = tuple(
        f"{difference.name}."
        for difference in found
        if difference.kind in _WHOLES and difference.change != "changed"
    )
    missing = {
        f"{difference.kind} {difference.name}"
        for difference in found
        if difference.kind in _GRANTABLE and difference.change == "missing"
    }
    return [
        difference
        for difference in found
        if not (difference.kind in _PARTS and difference.name.startswith(gone))
        and not (difference.kind == "grant" and _grant_object(difference.name) in missing)
    ]


def _grant_object(grant: str) -> str | None:
    granted = _GRANTED.fullmatch(grant)
    return f"{granted['kind']} {granted['object']}" if granted else None


def _compare_kind(
    kind: str, expected: dict[str, Attributes], actual: dict[str, Attributes]
) -> Iterator[Difference]:
    for name in sorted(expected.keys() | actual.keys()):
        if name not in actual:
            yield Difference("missing", kind, name)
        elif name not in expected:
            if not (kind == "grant" and _is_tenant_grant(name)):
                yield Difference("extra", kind, name)
        elif expected[name] != actual[name]:
            yield Difference("changed", kind, name, _detail(expected[name], actual[name]))


def _detail(expected: Attributes, actual: Attributes) -> str:
    return ", ".join(
        f"{name} differs"
        if name in _OPAQUE
        else f"{name} is {_shown(actual.get(name))}, should be {_shown(expected.get(name))}"
        for name in sorted(expected.keys() | actual.keys())
        if expected.get(name) != actual.get(name)
    )


def _shown(value: object) -> str:
    if value is None:
        return "not set"
    return "set" if value is True else repr(value)


def _is_tenant_grant(name: str) -> bool:
    granted = _TENANT_GRANT.match(name)
    if granted is None:
        return False
    schema, _, thing = granted["object"].partition(".")
    match granted["right"], granted["kind"]:
        case "usage", "schema":
            allowed = schema == tenants.SCHEMA
        case "execute", "function":
            allowed = schema == tenants.SCHEMA and thing in tenants.FUNCTIONS
        case "select", "view":
            allowed = schema == tenants.SCHEMA and thing in tenants.VIEWS
        case _:
            allowed = False
    return allowed


def _with_one_fingerprint(expected: Catalog, actual: Catalog) -> tuple[Catalog, Catalog]:
    """Compare views by their text if both sides have it, otherwise by their shape."""
    sides = (expected.get("view", {}), actual.get("view", {}))
    exact = all("text" in view for side in sides for view in side.values())

    def chosen(view: Attributes) -> Attributes:
        rest = {name: value for name, value in view.items() if name not in {"text", "shape"}}
        return rest | {"query": view["text" if exact else "shape"]}

    one, other = ({name: chosen(view) for name, view in side.items()} for side in sides)
    return expected | {"view": one}, actual | {"view": other}


def _with_short_names(expected: Catalog, actual: Catalog) -> tuple[Catalog, Catalog]:
    """Name functions without their argument types if the short name is unique."""
    signatures = expected.get("function", {}).keys() | actual.get("function", {}).keys()
    count = Counter(_FUNCTION.sub(r"\g<name>", signature) for signature in signatures)

    def short(found: re.Match[str]) -> str:
        return found["name"] if count[found["name"]] == 1 else found[0]

    def shortened(whole: Catalog) -> Catalog:
        return {
            kind: {_FUNCTION.sub(short, name): objects[name] for name in objects}
            if kind in {"function", "grant"}
            else objects
            for kind, objects in whole.items()
        }

    return shortened(expected), shortened(actual)
