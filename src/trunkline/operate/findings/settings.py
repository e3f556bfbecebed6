"""Settings of the role, the database or the server that stop work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from trunkline.db.calls.checks import SessionSetting
from trunkline.model import Finding

__all__ = ["setting_findings"]

_NEEDED: Final = {
    "default_transaction_isolation": "no job can be claimed or ended above read committed",
    "default_transaction_read_only": "nothing can be written",
    "row_security": "tables with forced row security cannot be read",
}
_UNITS: Final = {"statement_timeout": " ms", "lock_timeout": " ms", "transaction_timeout": " ms"}
# Milliseconds. A shorter timeout fails calls too; duties and installations take longer.
_SHORT_TIMEOUT: Final = 5000


def setting_findings(settings: Sequence[SessionSetting], *, pooled: bool) -> list[Finding]:
    """Return the settings that stop work in sessions that keep them.

    Our own connections override these settings, except behind a pooler.
    """
    findings = [_finding(setting, pooled) for setting in settings if _stops_work(setting)]
    return findings or [Finding("settings", "ok", "no setting of this role stops work")]


def _finding(setting: SessionSetting, pooled: bool) -> Finding:
    return Finding(
        "settings",
        "fail" if pooled and setting.name in _NEEDED else "warn",
        f"{setting.name} is {setting.value}{_UNITS.get(setting.name, '')}, set by "
        f"{_place(setting)}: "
        + (_NEEDED.get(setting.name) or "statements that take longer are cancelled")
        + ("" if pooled else "; our own direct connections set what they need"),
        f"Run: {_reset(setting)}",
    )


def _stops_work(setting: SessionSetting) -> bool:
    match setting.name:
        case "default_transaction_isolation":
            return setting.value not in {"read committed", "read uncommitted"}
        case "default_transaction_read_only":
            return setting.value == "on"
        case "row_security":
            return setting.value == "off"
        case _ if setting.name in _UNITS:
            return 0 < int(setting.value) < _SHORT_TIMEOUT
        case _:
            return False


def _place(setting: SessionSetting) -> str:
    if setting.source == "server":
        return "the server or the connection string"
    places = [f"role {setting.role}"] * (setting.role is not None)
    places += [f"database {setting.database}"] * (setting.database is not None)
    return " in ".join(places) or "all roles and databases"


def _reset(setting: SessionSetting) -> str:
    if setting.source == "server":
        return f"alter system reset {setting.name}; select pg_reload_conf();"
    if setting.role is None:
        return f'alter database "{setting.database}" reset {setting.name};'
    place = f' in database "{setting.database}"' if setting.database else ""
    return f'alter role "{setting.role}"{place} reset {setting.name};'
