"""Which server to talk to. Nothing else in the package knows whether it is the embedded one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.errors import DatabaseUnreachable

__all__ = ["DSN_VARIABLE", "resolve"]

DSN_VARIABLE = "TRUNKLINE_DSN"


@contextmanager
def resolve(dsn: str | None = None) -> Iterator[str]:
    """Give the connection string: the one passed, else TRUNKLINE_DSN, else an embedded server's.

    The embedded server is started if it is down and stays up at least as long as the context.
    """
    if dsn is not None and not dsn.strip():
        raise DatabaseUnreachable("The connection string is empty")
    given = dsn or os.environ.get(DSN_VARIABLE)
    if given:
        yield given
        return
    # Not needed, and on some platforms not even importable, with a server of one's own.
    from trunkline.embedded import acquire  # noqa: PLC0415

    with acquire() as server:
        yield server.dsn
