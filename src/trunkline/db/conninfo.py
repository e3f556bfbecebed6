"""Connection strings, checked before libpq parses them: its errors quote unreadable parts."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from psycopg import Error
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo

from trunkline.errors import DatabaseUnreachable

__all__ = ["for_program", "parse"]

_SCHEME: Final = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_UNKNOWN: Final = re.compile(r'invalid (?:connection option|URI query parameter:) "(\w+)"')
_HINT: Final = (
    "Write postgresql://user:password@host:5432/database in --dsn or TRUNKLINE_DSN and "
    "percent-encode special characters in the password: @ is %40, / is %2F, : is %3A, ? is %3F, "
    "% is %25. Or leave the password out and set PGPASSWORD."
)


def parse(dsn: str) -> dict[str, str]:
    """Return the fields of a connection string.

    A string that cannot be read is refused without quoting any of it. If the password contains an
    unescaped @, libpq takes the rest of the password for the host and names it in its error.
    """
    if not _is_clear(dsn):
        raise DatabaseUnreachable(
            "The connection string has an @ or a / that is not percent-encoded", hint=_HINT
        )
    try:
        fields = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except Error as error:
        # Without the cause: a traceback would show the text.
        raise DatabaseUnreachable(
            f"The connection string cannot be read{_suggestion(str(error))}", hint=_HINT
        ) from None
    if not all(port.isdigit() for port in fields.get("port", "").split(",") if port):
        raise DatabaseUnreachable(
            "The port in the connection string is not a number", hint=_HINT
        ) from None
    return fields


def for_program(dsn: str) -> tuple[str, dict[str, str]]:
    """Return the string for the command line of a libpq program and variables for its environment.

    Every user can read a command line, so the password goes into the environment.
    """
    fields = parse(dsn)
    if fields.get("sslpassword"):
        raise DatabaseUnreachable(
            "libpq programs take sslpassword only where every user can read it",
            hint="Keep it in a service file and set TRUNKLINE_DSN to service=NAME.",
        )
    password = fields.pop("password", None)
    return make_conninfo("", **fields), {} if password is None else {"PGPASSWORD": password}


def _suggestion(complaint: str) -> str:
    """Return the option that was probably meant, never the unknown text itself."""
    unknown = _UNKNOWN.search(complaint)
    names = [option.keyword.decode() for option in Conninfo.get_defaults()]
    similar = get_close_matches(unknown[1], names, 1) if unknown else []
    return f": did you mean the option {similar[0]}?" if similar else ""


def _is_clear(dsn: str) -> bool:
    """Return whether a URI has at most one @, located before its path."""
    scheme = _SCHEME.match(dsn.strip())
    if scheme is None:
        return True
    place = dsn.strip()[scheme.end() :].partition("?")[0]
    server, _, path = place.partition("/")
    return server.count("@") <= 1 and "@" not in path
