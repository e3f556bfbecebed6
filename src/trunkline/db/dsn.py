"""Selects the server. Nothing else in the package knows whether it is the embedded one."""

import logging
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from trunkline.errors import (
    DatabaseUnreachable,
    DsnRequired,
    InvalidVariable,
    SchemaMissing,
    SchemaOlderThanClient,
)

__all__ = [
    "DSN_VARIABLE",
    "EMBEDDED_VARIABLE",
    "Administered",
    "embedded_variable",
    "given",
    "reported",
    "resolve",
    "resolve_administered",
    "resolve_ready",
    "revive",
]

DSN_VARIABLE: Final = "TRUNKLINE_DSN"
EMBEDDED_VARIABLE: Final = "TRUNKLINE_EMBEDDED"

_YES: Final = frozenset({"1", "true", "yes", "on"})
_NO: Final = frozenset({"0", "false", "no", "off"})

_log = logging.getLogger("trunkline.embedded")

# Embedded servers that this process uses, by connection string.
_embedded: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()

# Embedded servers that this process, the one it was forked from or its parent has reported: their
# folders and connection strings. `setdefault` is atomic, and a fork cannot copy it in a locked
# state, as it can a lock.
_reported: dict[str, object] = {}


def given(dsn: str | None = None) -> str | None:
    """Return the connection string passed, else the one in TRUNKLINE_DSN, else None."""
    if dsn is not None and not dsn.strip():
        raise DatabaseUnreachable("The connection string is empty")
    return dsn or os.environ.get(DSN_VARIABLE, "").strip() or None


@contextmanager
def resolve(
    dsn: str | None = None, *, embedded: bool | None = None, quiet: bool = False
) -> Iterator[str]:
    """Yield the connection string: the one passed, else TRUNKLINE_DSN, else the embedded server's.

    The embedded server is started if it is down and stays up at least as long as the context.
    ``embedded`` sets whether it may be used; with None, TRUNKLINE_EMBEDDED decides. Unless it is
    allowed explicitly, its use is logged as a warning, once for each process. ``quiet`` callers
    report it themselves, or have a parent process that did.
    """
    with _resolved(dsn, embedded=embedded, quiet=quiet) as target:
        yield target if isinstance(target, str) else target.dsn


class Administered(NamedTuple):
    """A server, with the connection string of an administrator."""

    dsn: str
    # The connection string that other commands use. Messages name the server by it.
    known_as: str
    # The role that maintains the schema, if it is not the connecting one.
    installer: str | None


@contextmanager
def resolve_administered(dsn: str | None = None) -> Iterator[Administered]:
    """Yield the same server as ``resolve``, but connect to the embedded one as its superuser.

    The superuser needs no password on the socket.
    """
    with _resolved(dsn) as target:
        if isinstance(target, str):
            yield Administered(target, target, None)
            return
        from trunkline.embedded.server import INSTALLER  # noqa: PLC0415 - as in _resolved

        yield Administered(target.superuser_dsn, target.dsn, INSTALLER)


@contextmanager
def _resolved(
    dsn: str | None, *, embedded: bool | None = None, quiet: bool = False
) -> Iterator[Any]:
    """Yield the connection string if there is one, else the running embedded server."""
    # Read even when it is not needed, so that a bad value is reported at once.
    allowed = embedded_variable()
    target = given(dsn)
    if target is not None:
        # Not at the top: importing the driver is slow, and --help does not need it.
        from trunkline.db.conninfo import parse  # noqa: PLC0415

        parse(target)
        yield target
        return
    if embedded is not None:
        allowed = embedded
    if allowed is False:
        source = (
            f"{EMBEDDED_VARIABLE} is {os.environ.get(EMBEDDED_VARIABLE, '').strip()}"
            if embedded is None
            else "the application was created with embedded=False"
        )
        raise DsnRequired(
            f"There is no connection string, and {source}, so the embedded server is not used"
        )
    # Imported only here: on some platforms the package cannot be imported.
    from trunkline.embedded import acquire  # noqa: PLC0415

    with acquire() as server:
        _embedded[server.dsn] = server
        _report(server, chosen=allowed is True, quiet=quiet)
        yield server


def reported(dsn: str) -> None:
    """Record that the parent of this process has already reported this server."""
    _reported[dsn] = True


def revive(dsn: str) -> None:
    """Start the embedded server again if it died and if this process uses it."""
    server = _embedded.get(dsn)
    if server is not None:
        server.ensure_running()


@contextmanager
def resolve_ready(
    dsn: str | None = None, *, embedded: bool | None = None, quiet: bool = False
) -> Iterator[str]:
    """Yield the same as ``resolve``, and install the schema in the embedded server.

    So a new user has nothing to set up. A database that a connection string names is not changed.
    """
    with resolve(dsn, embedded=embedded, quiet=quiet) as target:
        if given(dsn) is None:
            _make_ready(target)
        yield target


def embedded_variable() -> bool | None:
    """Return whether TRUNKLINE_EMBEDDED allows the embedded server; None if it is not set."""
    value = os.environ.get(EMBEDDED_VARIABLE, "").strip()
    if not value:
        return None
    if value.lower() in _YES:
        return True
    if value.lower() in _NO:
        return False
    raise InvalidVariable(
        f"{EMBEDDED_VARIABLE} is {value!r}",
        hint=f"Set {EMBEDDED_VARIABLE} to 0 to require a connection string, to 1 to allow the "
        "embedded server, or unset it.",
    )


def _report(server: Any, *, chosen: bool, quiet: bool) -> None:
    folder = str(server.folder.home)
    mark = object()
    # A quiet use leaves no mark: the process may still use the server as an application.
    if quiet or server.dsn in _reported or _reported.setdefault(folder, mark) is not mark:
        return
    if chosen:
        _log.info("using the embedded server in %s", folder)
        return
    _log.warning(
        "%s is not set: using the embedded server in %s, which other machines cannot reach. Set %s"
        " to use your database, or %s=1 if this is intended; %s=0 refuses it",
        DSN_VARIABLE,
        folder,
        DSN_VARIABLE,
        EMBEDDED_VARIABLE,
        EMBEDDED_VARIABLE,
    )


def _make_ready(dsn: str) -> None:
    import psycopg  # noqa: PLC0415 - only for the embedded server, see above

    from trunkline.schema import install  # noqa: PLC0415
    from trunkline.schema.contract import check_contract  # noqa: PLC0415

    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            check_contract(connection)
        except (SchemaMissing, SchemaOlderThanClient):
            install(dsn)
