"""What the doctor looks at, one check after the other."""

from __future__ import annotations

import platform
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from trunkline import __version__, schema, sql
from trunkline.cli import workload_checks
from trunkline.cli.connection import Session
from trunkline.cli.finding import Finding
from trunkline.cli.health_findings import of_breakers, of_deferred, of_set_aside
from trunkline.cli.output import age, clean, count
from trunkline.cli.session_settings import session_settings
from trunkline.db.address import address
from trunkline.db.calls import checks, views
from trunkline.db.dsn import embedded_variable, given, resolve
from trunkline.db.translate import translated
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseReadOnly,
    SchemaError,
    SchemaForbidden,
    TrunklineError,
)
from trunkline.model import HealthCheck
from trunkline.profiles import verification

__all__ = ["diagnose"]

_PATIENCE: Final = 2.0
_CLOCKS_APART: Final = timedelta(seconds=2)
_NEEDED_ROLES: Final = "trunkline_operator or trunkline_reader"
_SHOWN: Final = 3


def diagnose(dsn: str | None, listen_dsn: str | None) -> Iterator[Finding]:
    """All checks; those that need what an earlier one lacks are left out."""
    yield Finding("client", "ok", f"trunkline {__version__} on Python {platform.python_version()}")
    try:
        # Quiet: a finding reports it here.
        with resolve(dsn, quiet=True) as target:
            if given(dsn) is None:
                yield _embedded(target)
            yield from _on_server(target, listen_dsn)
    except ConnectionLost as error:
        # Its own hint is about calls that change something.
        yield Finding("server", "fail", str(error), "Run trunkline doctor again.")
    except TrunklineError as error:
        yield Finding("server", "fail", str(error), error.hint or None)


def _embedded(target: str) -> Finding:
    if embedded_variable():
        return Finding("embedded", "ok", f"TRUNKLINE_EMBEDDED allows the server {address(target)}")
    return Finding(
        "embedded",
        "warn",
        f"there is no connection string, so this is the server {address(target)}",
        "Set TRUNKLINE_DSN or pass --dsn to check your own server; set TRUNKLINE_EMBEDDED=1 if "
        "the embedded one is intended.",
    )


def _on_server(target: str, listen_dsn: str | None) -> Iterator[Finding]:
    try:
        session = Session(target)
    except SchemaError as error:
        yield Finding("connection", "ok", f"the server {address(target)} lets us in")
        yield Finding("schema", "fail", str(error), error.hint or None)
        return
    try:
        yield from _identity(session)
        for look in (
            lambda: session_settings(session),
            lambda: _differences(target),
            lambda: _profiles(target),
            lambda: _health(session),
            lambda: workload_checks.workers(session),
            lambda: workload_checks.unserved(session),
            lambda: workload_checks.dead(session),
            lambda: workload_checks.disk(session),
            lambda: _listen(session, listen_dsn),
        ):
            yield from _guarded(look)
    finally:
        session.close()


def _guarded(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        with translated():
            yield from look()
    except SchemaForbidden as error:
        yield Finding(
            "role", "warn", f"this role may not look: {error}", f"Be a member of {_NEEDED_ROLES}."
        )
    except DatabaseProblem as error:
        yield Finding("server", "fail", f"{error} ({error.code})", error.hint or None)


def _identity(session: Session) -> Iterator[Finding]:
    before, started = datetime.now(UTC), time.monotonic()
    found = session.ask(checks.identity())
    trip = timedelta(seconds=time.monotonic() - started)
    pooler = session.connection.prepare_threshold is None
    yield Finding(
        "connection",
        "ok",
        f"{found.database} on {_place(session)}, answered in {age(trip)}"
        + (", through a pooler" if pooler else ""),
    )
    yield _server(found)
    yield _schema(found)
    yield _role(found)
    offset = found.clock - (before + trip / 2)
    apart = abs(offset) > max(_CLOCKS_APART, trip)
    yield Finding(
        "clock",
        "warn" if apart else "ok",
        f"the server's is {age(offset)} {'ahead of' if offset > timedelta() else 'behind'} ours",
        "Times in the queue are the server's; set this machine's clock by NTP so that logs match."
        if apart
        else None,
    )


def _place(session: Session) -> str:
    name = address(session.target)
    if name.startswith("embedded in "):
        return f"the server {name}"
    # If there are several hosts, the one that accepted the connection.
    info = session.connection.info
    return f"{info.host}, port {info.port}"


def _server(found: checks.Identity) -> Finding:
    version = f"PostgreSQL {found.server_version}"
    if found.in_recovery:
        return Finding(
            "server",
            "fail",
            f"{version} is a standby: it can be read only",
            "Connect to the primary: list all hosts in the connection string and add "
            "target_session_attrs=read-write.",
        )
    return Finding("server", "ok", version)


def _schema(found: checks.Identity) -> Finding:
    shipped = len(sql.migrations())
    text = f"version {found.schema_version}, contract {found.contract}"
    if found.schema_version < shipped:
        return Finding(
            "schema",
            "warn",
            f"{text}; this package ships version {shipped}",
            "Run: trunkline schema upgrade",
        )
    if found.schema_version > shipped:
        return Finding(
            "schema",
            "warn",
            f"{text}; this package knows version {shipped} only and is still served",
            "Upgrade the trunkline package.",
        )
    return Finding("schema", "ok", text)


def _role(found: checks.Identity) -> Finding:
    roles = ", ".join(found.roles) or "none of ours"
    text = f"{found.user}, member of {roles}"
    if found.tenant is not None:
        text += f", acts for tenant {found.tenant or 'nobody'}"
    if found.superuser:
        return Finding(
            "role",
            "warn",
            f"{found.user} is a superuser",
            "Let applications connect as roles that are members of trunkline_producer or "
            "trunkline_worker and nothing more.",
        )
    if not found.roles:
        return Finding(
            "role", "warn", text, f"Let an administrator: grant trunkline_worker to {found.user}"
        )
    return Finding("role", "ok", text)


def _differences(target: str) -> Iterator[Finding]:
    found = schema.verify(target)
    if not found:
        yield Finding("schema verify", "ok", "equal to the shipped schema")
        return
    named = "; ".join(f"{one.change} {one.kind} {one.name}" for one in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    if newer := schema.newer_than_package(target):
        yield Finding("schema verify", "warn", f"not comparable: {newer}", newer.hint)
        return
    yield Finding(
        "schema verify",
        "fail",
        f"{count(len(found), 'difference')}: {named}{more}",
        "See all with `trunkline schema verify`; `trunkline schema upgrade` brings functions, "
        "views and grants back.",
    )


def _profiles(target: str) -> Iterator[Finding]:
    found = verification.verify(target)
    if not found:
        return
    if newer := schema.newer_than_package(target):
        yield Finding("profiles", "warn", f"not comparable: {newer}", newer.hint)
        return
    if all(one.kind == verification.PACKAGE for one in found):
        yield Finding("profiles", "warn", "; ".join(map(str, found)), "Install the packages.")
        return
    yield Finding(
        "profiles",
        "fail",
        f"{count(len(found), 'difference')}: {'; '.join(map(str, found[:_SHOWN]))}"
        + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""),
        "See all with `trunkline schema verify`; repair with "
        "`trunkline profile install NAME --again`.",
    )


def _health(session: Session) -> Iterator[Finding]:
    rows = session.ask(checks.health())
    yield from _duties(session, [row for row in rows if _is_duty(row) and not row.ok])
    for row in rows:
        if row.check == "breakers" and not row.ok:
            yield of_breakers(row)
        elif row.check == "deferred work":
            yield of_deferred(row)
        elif row.check == "set aside":
            yield of_set_aside(row)
        elif not _is_duty(row):
            yield _of_health(row)


def _duties(session: Session, rows: Sequence[HealthCheck]) -> Iterator[Finding]:
    enabled = {
        row.check.removeprefix("duty "): bool((row.detail or {}).get("enabled", True))
        for row in rows
    }
    if late := [name for name, on in enabled.items() if on]:
        alive = any(row.alive for row in session.ask(views.workers(everyone=False)))
        yield Finding(
            "duties",
            "fail" if alive else "warn",
            f"late or failing: {', '.join(late)}",
            "See why with: trunkline duties list"
            if alive
            else "Nobody does them: start a worker (trunkline worker APP) or `trunkline up`.",
        )
    else:
        yield Finding("duties", "ok", "all on time")
    if disabled := [name for name, on in enabled.items() if not on]:
        yield Finding(
            "disabled duties",
            "warn",
            ", ".join(disabled),
            f"Enable it with: trunkline duties enable {disabled[0]}",
        )


def _is_duty(row: HealthCheck) -> bool:
    return row.check.startswith("duty ")


def _of_health(row: HealthCheck) -> Finding:
    detail = row.detail or {}
    jobs = count(int(detail.get("jobs", 0)), "job")
    if row.ok:
        good = {"breakers": "all closed", "claims": "enabled", "default partitions": "not in use"}
        return Finding(row.check, "ok", good.get(row.check, "none"))
    match row.check:
        case "stale work":
            return Finding(
                row.check,
                "fail",
                f"{jobs} gave no sign of life for twice their lease and were not taken back",
                "The duty reclaim does not run: trunkline duties run reclaim",
            )
        case "claims":
            return Finding(
                row.check,
                "warn",
                "switched off for everybody",
                "Switch them on with: trunkline settings reset claims_enabled",
            )
        case "default partitions":
            used = ", ".join(name for name, in_use in detail.items() if in_use)
            return Finding(
                row.check,
                "warn",
                f"rows of {used} are in no day's partition",
                "Make partitions with: trunkline duties run maintain_partitions",
            )
        case _:
            return Finding(row.check, "fail", clean(dict(detail)))


def _listen(session: Session, listen_dsn: str | None) -> Iterator[Finding]:
    try:
        with translated():
            heard = _heard_after(session, listen_dsn)
    except DatabaseReadOnly:
        yield Finding("listen", "warn", "not tried: a standby passes no notifications on")
    except _Pooled:
        yield Finding(
            "listen",
            "warn",
            "not tried: this connection leads through a pooler",
            "Give workers a direct connection with --listen-dsn, and this command too.",
        )
    except TrunklineError as error:
        yield Finding("listen", "fail", str(error), error.hint or None)
    else:
        if heard is not None:
            yield Finding("listen", "ok", f"a notification came after {age(heard)}")
            return
        yield Finding(
            "listen",
            "warn",
            f"no notification came within {_PATIENCE:g} seconds; workers find jobs by polling",
            "Notifications do not pass a pooler in transaction mode: give workers a direct "
            "connection with --listen-dsn.",
        )


class _Pooled(Exception):
    """A pooler is in between."""


def _heard_after(session: Session, listen_dsn: str | None) -> timedelta | None:
    nonce = secrets.token_hex(8)
    listener = Session(listen_dsn or session.target)
    try:
        if listener.connection.prepare_threshold is None:
            # A LISTEN left on a shared connection disturbs everybody who gets it afterwards.
            raise _Pooled
        listener.connection.execute(checks.LISTEN)
        started = time.monotonic()
        session.ask(checks.notify(nonce))
        for notice in listener.connection.notifies(timeout=_PATIENCE):
            if notice.payload == nonce:
                return timedelta(seconds=time.monotonic() - started)
        return None
    finally:
        listener.close()
