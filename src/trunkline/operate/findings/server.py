"""The server, its schema, the role of the connection, and the clocks."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from trunkline import sql
from trunkline.db.calls.checks import Identity
from trunkline.model import Finding
from trunkline.telemetry import age

__all__ = ["clock_finding", "server_findings"]

_CLOCKS_APART: Final = timedelta(seconds=2)


def server_findings(identity: Identity) -> list[Finding]:
    """Return what the connection reports about the server, the schema and its role."""
    return [_server(identity), _schema(identity), _role(identity)]


def clock_finding(identity: Identity, sent: datetime, trip: timedelta) -> Finding:
    """Compare the server's time with the clock of this machine."""
    offset = identity.clock - (sent + trip / 2)
    apart = abs(offset) > max(_CLOCKS_APART, trip)
    return Finding(
        "clock",
        "warn" if apart else "ok",
        f"the server's is {age(offset)} {'ahead of' if offset > timedelta() else 'behind'} ours",
        "Times in the queue are the server's; set this machine's clock by NTP so that logs match."
        if apart
        else None,
    )


def _server(identity: Identity) -> Finding:
    version = f"PostgreSQL {identity.server_version}"
    if identity.in_recovery:
        return Finding(
            "server",
            "fail",
            f"{version} is a standby and read-only",
            "Connect to the primary: list all hosts in the connection string and add "
            "target_session_attrs=read-write.",
        )
    return Finding("server", "ok", version)


def _schema(identity: Identity) -> Finding:
    shipped = len(sql.migrations())
    text = f"version {identity.schema_version}, contract {identity.contract}"
    if identity.schema_version < shipped:
        return Finding(
            "schema",
            "warn",
            f"{text}; this package ships version {shipped}",
            "Run: trunkline schema upgrade",
        )
    if identity.schema_version > shipped:
        return Finding(
            "schema",
            "warn",
            f"{text}; this package ships version {shipped} and is still supported",
            "Upgrade the trunkline package.",
        )
    return Finding("schema", "ok", text)


def _role(identity: Identity) -> Finding:
    roles = ", ".join(identity.roles) or "no role of Trunkline"
    text = f"{identity.user}, member of {roles}"
    if identity.tenant is not None:
        text += f", acts for tenant {identity.tenant or 'nobody'}"
    if identity.superuser:
        return Finding(
            "role",
            "warn",
            f"{identity.user} is a superuser",
            "Let applications connect as roles that are members of trunkline_producer or "
            "trunkline_worker and nothing more.",
        )
    if not identity.roles:
        return Finding(
            "role",
            "warn",
            text,
            f"Ask an administrator to run: grant trunkline_worker to {identity.user}",
        )
    return Finding("role", "ok", text)
