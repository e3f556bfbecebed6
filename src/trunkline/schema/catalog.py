"""The catalogue of the schema as data: kind → name → attributes.

The same files give the same catalogue on PostgreSQL 15 to 18. The queries leave out what only some
versions list (NOT NULL constraints, an additional privilege of the owner). The text of a view is
the same from PostgreSQL 16 on; 15 qualifies more columns. So a view has two fingerprints: one of
its text, and one of its shape, which is the text without qualifiers and everything the view reads.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

from psycopg import sql

from trunkline.schema.catalog_queries import MIGRATIONS, QUERIES
from trunkline.schema.session import Connection

__all__ = ["ENGINE", "Attributes", "Catalog", "dump", "parse", "read"]

ENGINE: Final = ("trunkline", "trunkline_internal")

Attributes: TypeAlias = dict[str, Any]
Catalog: TypeAlias = dict[str, dict[str, Attributes]]

# An identifier, quoted or not, and the dot after it.
_QUALIFIER = re.compile(r'(?:\b[a-z_][a-z0-9_$]*|"[^"]+")\.(?=[a-z_"])')


def read(
    connection: Connection,
    schemas: Sequence[str] = ENGINE,
    kinds: Iterable[str] | None = None,
    spell: Callable[[str], str] = str,
) -> Catalog:
    """Read the live catalogue of these schemas, by default of the engine with its migrations.

    If the role may not read the migrations, the catalogue has no kind ``migration``. ``spell``
    rewrites every text before it is fingerprinted. The connection's transaction keeps the
    search_path set here.
    """
    connection.execute("set local search_path = pg_catalog")
    names = sql.Literal(list(schemas)).as_string(connection)
    chosen = QUERIES if kinds is None else {kind: QUERIES[kind] for kind in kinds}
    catalog = {
        kind: _spelled(_objects(connection, query.replace(":schemas", names).encode()), spell)
        for kind, query in chosen.items()
    }
    exact = connection.info.server_version >= 160000
    for function in catalog.get("function", {}).values():
        function["body"] = _fingerprint(function["body"])
    for view in catalog.get("view", {}).values():
        text = " ".join(view.pop("definition").split())
        view["shape"] = _fingerprint(_QUALIFIER.sub("", text), *sorted(view.pop("reads", [])))
        if exact:
            view["text"] = _fingerprint(text)
    if kinds is None and _may_read_migrations(connection):
        catalog["migration"] = _objects(connection, MIGRATIONS)
    return catalog


def dump(catalog: Catalog) -> str:
    """Return a catalogue as JSON with one object per line, so that diffs are readable."""
    kinds = []
    for kind in sorted(catalog):
        objects = catalog[kind]
        lines = [
            f"    {json.dumps(name)}: {json.dumps(objects[name], sort_keys=True)}"
            for name in sorted(objects)
        ]
        body = "{\n" + ",\n".join(lines) + "\n  }" if lines else "{}"
        kinds.append(f"  {json.dumps(kind)}: {body}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def parse(text: str) -> Catalog:
    """Return the catalogue that `dump` wrote."""
    catalog: Catalog = json.loads(text)
    return catalog


def _objects(connection: Connection, query: Any) -> dict[str, Attributes]:
    return {name: _without_empty(attributes) for name, attributes in connection.execute(query)}


def _spelled(objects: dict[str, Attributes], spell: Callable[[str], str]) -> dict[str, Attributes]:
    def value(found: Any) -> Any:
        if isinstance(found, list):
            return [value(item) for item in found]
        return spell(found) if isinstance(found, str) else found

    return {
        spell(name): {key: value(found) for key, found in attributes.items()}
        for name, attributes in objects.items()
    }


def _without_empty(attributes: Attributes) -> Attributes:
    """Return the attributes that are not null, false or empty, as absent ones are."""
    return {name: value for name, value in attributes.items() if value not in (None, False, "")}


def _may_read_migrations(connection: Connection) -> bool:
    row = connection.execute(
        "select coalesce(bool_and(has_table_privilege(c.oid, 'select')), false)"
        " and coalesce(has_schema_privilege(to_regnamespace('trunkline_internal'), 'usage'), false)"
        " from pg_class as c where c.relname = 'schema_migrations'"
        " and c.relnamespace = to_regnamespace('trunkline_internal')"
    ).fetchone()
    return row is not None and bool(row[0])


def _fingerprint(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
