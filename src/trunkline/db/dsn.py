"""Which server to talk to. Nothing else in the package knows whether it is the embedded one."""

import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trunkline.errors import DatabaseUnreachable, SchemaMissing, SchemaOlderThanClient

__all__ = ["DSN_VARIABLE", "resolve", "resolve_ready", "revive"]

DSN_VARIABLE = "TRUNKLINE_DSN"

# The embedded server this process holds, if any, by its connection string.
_embedded: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


@contextmanager
def resolve(dsn: str | None = None) -> Iterator[str]:
    """Give the connection string: the one passed, else TRUNKLINE_DSN, else an embedded server's.

    The embedded server is started if it is down and stays up at least as long as the context.
    """
    if dsn is not None and not dsn.strip():
        raise DatabaseUnreachable("The connection string is empty")
    given = dsn or os.environ.get(DSN_VARIABLE)
    if given:
        # Not at the top: the driver takes its time, and help does not need it.
        from trunkline.db.conninfo import parse  # noqa: PLC0415

        parse(given)
        yield given
        return
    # Not needed, and on some platforms not even importable, with a server of one's own.
    from trunkline.embedded import acquire  # noqa: PLC0415

    with acquire() as server:
        _embedded[server.dsn] = server
        yield server.dsn


def revive(dsn: str) -> None:
    """Start the embedded server again if it died under this process; nobody else's is touched."""
    server = _embedded.get(dsn)
    if server is not None:
        server.ensure_running()


@contextmanager
def resolve_ready(dsn: str | None = None) -> Iterator[str]:
    """The same, with a schema where the database is our own: a newcomer has nothing to set up.

    Nobody's database gets a schema unasked: with a connection string it is left as it is.
    """
    with resolve(dsn) as target:
        if not (dsn or os.environ.get(DSN_VARIABLE)):
            _make_ready(target)
        yield target


def _make_ready(dsn: str) -> None:
    import psycopg  # noqa: PLC0415 - only for the embedded server, see above

    from trunkline.schema import install  # noqa: PLC0415
    from trunkline.schema.contract import check_contract  # noqa: PLC0415

    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            check_contract(connection)
        except (SchemaMissing, SchemaOlderThanClient):
            install(dsn)
