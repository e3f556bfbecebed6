"""Settings of the role, the database or the server that stop work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trunkline.cli.connection import Session
from trunkline.cli.finding import Finding
from trunkline.db.calls import checks

__all__ = ["session_settings"]


def session_settings(session: Session) -> Iterator[Finding]:
    """Report the settings that stop work in sessions that keep them.

    Our own connections override these settings, except behind a pooler.
    """
    pooled = session.connection.prepare_threshold is None
    wrong = [row for row in session.ask(checks.session_settings()) if _stops_work(row)]
    for row in wrong:
        stops = row.name in _NEEDED and pooled
        yield Finding(
            "settings",
            "fail" if stops else "warn",
            f"{row.name} is {row.value}{_UNITS.get(row.name, '')}, set by {_setter_of(row)}: "
            + (_NEEDED.get(row.name) or "statements that take longer are ended")
            + ("" if pooled else "; our own direct connections set what they need"),
            f"Run: {_reset(row)}",
        )
    if not wrong:
        yield Finding("settings", "ok", "none of this role stops work")


_NEEDED: Final = {
    "default_transaction_isolation": "no job can be claimed or ended above read committed",
    "default_transaction_read_only": "nothing can be written",
    "row_security": "tables with forced row security cannot be read",
}
_UNITS: Final = {"statement_timeout": " ms", "lock_timeout": " ms", "transaction_timeout": " ms"}
# Milliseconds. A shorter timeout fails calls too; duties and installations take longer.
_SHORT_TIMEOUT: Final = 5000


def _stops_work(row: checks.SessionSetting) -> bool:
    match row.name:
        case "default_transaction_isolation":
            return row.value not in {"read committed", "read uncommitted"}
        case "default_transaction_read_only":
            return row.value == "on"
        case "row_security":
            return row.value == "off"
        case _ if row.name in _UNITS:
            return 0 < int(row.value) < _SHORT_TIMEOUT
        case _:
            return False


def _setter_of(row: checks.SessionSetting) -> str:
    if row.source == "server":
        return "the server or the connection string"
    named = [f"role {row.role}"] * (row.role is not None)
    return " in ".join(named + [f"database {row.database}"] * (row.database is not None)) or "all"


def _reset(row: checks.SessionSetting) -> str:
    if row.source == "server":
        return f"alter system reset {row.name}; select pg_reload_conf();"
    if row.role is None:
        return f'alter database "{row.database}" reset {row.name};'
    place = f' in database "{row.database}"' if row.database else ""
    return f'alter role "{row.role}"{place} reset {row.name};'
