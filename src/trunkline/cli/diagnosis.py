"""The doctor's checks: those of `trunkline.operate`, and those that concern this machine."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Final

from trunkline import __version__, schema
from trunkline.cli.connection import Session
from trunkline.cli.output import age, count
from trunkline.db.address import address
from trunkline.db.dsn import embedded_variable, given, resolve
from trunkline.db.translate import translated
from trunkline.errors import (
    ConnectionLost,
    DatabaseProblem,
    DatabaseReadOnly,
    SchemaError,
    SchemaNewerThanClient,
    TrunklineError,
)
from trunkline.operate import Finding
from trunkline.profiles import verification
from trunkline.schema import Difference
from trunkline.worker.echo import PATIENCE, Pooled, echo_time

__all__ = ["diagnose"]

_SHOWN: Final = 3


def diagnose(dsn: str | None, listen_dsn: str | None) -> Iterator[Finding]:
    """Yield the findings of all checks, without those that need what an earlier one lacks."""
    yield Finding("client", "ok", f"trunkline {__version__} on Python {platform.python_version()}")
    try:
        # Quiet: a finding reports it here.
        with resolve(dsn, quiet=True) as target:
            if given(dsn) is None:
                yield _embedded(target)
            yield from _server(target, listen_dsn)
    except ConnectionLost as error:
        # The error's own hint is about calls that change something.
        yield Finding("server", "fail", str(error), "Run trunkline doctor again.")
    except TrunklineError as error:
        yield _failure("server", error)


def _failure(check: str, error: TrunklineError) -> Finding:
    return Finding(check, "fail", str(error), error.hint or None)


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


def _server(target: str, listen_dsn: str | None) -> Iterator[Finding]:
    try:
        session = Session(target)
    except SchemaError as error:
        yield Finding("connection", "ok", f"the server {address(target)} accepts the connection")
        yield _failure("schema", error)
        return
    try:
        yield _connection(session)
        yield from session.operator.diagnose()
    finally:
        session.close()
    yield from _guarded("schema verify", lambda: _schema_differences(target))
    yield from _guarded("profiles", lambda: _profile_differences(target))
    yield from _guarded("listen", lambda: _listen(target, listen_dsn or target))


def _connection(session: Session) -> Finding:
    started = time.monotonic()
    session.operator.now()
    trip = timedelta(seconds=time.monotonic() - started)
    info = session.connection.info
    place = f"the server {session.address}"
    if not session.address.startswith("embedded in "):
        # If there are several hosts, the one that accepted the connection.
        place = f"{info.host}, port {info.port}"
    pooler = ", through a pooler" if session.is_pooled() else ""
    return Finding("connection", "ok", f"{info.dbname} on {place}, answered in {age(trip)}{pooler}")


def _guarded(check: str, findings: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        with translated():
            yield from findings()
    except DatabaseProblem as error:
        yield Finding(check, "fail", f"{error} ({error.code})", error.hint or None)
    except TrunklineError as error:
        yield _failure(check, error)


def _schema_differences(target: str) -> Iterator[Finding]:
    differences = schema.verify(target)
    if not differences:
        yield Finding("schema verify", "ok", "equal to the shipped schema")
    elif newer := schema.newer_than_package(target):
        yield _not_comparable("schema verify", newer)
    else:
        yield Finding(
            "schema verify",
            "fail",
            _shown(differences),
            "See all with `trunkline schema verify`; `trunkline schema upgrade` restores functions,"
            " views and grants.",
        )


def _profile_differences(target: str) -> Iterator[Finding]:
    differences = verification.verify(target)
    if not differences:
        return
    if newer := schema.newer_than_package(target):
        yield _not_comparable("profiles", newer)
    elif all(difference.kind == verification.PACKAGE for difference in differences):
        yield Finding("profiles", "warn", "; ".join(map(str, differences)), "Install the packages.")
    else:
        yield Finding(
            "profiles",
            "fail",
            _shown(differences),
            "See all with `trunkline schema verify`; repair with "
            "`trunkline profile install NAME --again`.",
        )


def _not_comparable(check: str, newer: SchemaNewerThanClient) -> Finding:
    return Finding(check, "warn", f"not comparable: {newer}", newer.hint)


def _shown(differences: list[Difference]) -> str:
    more = f" and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
    shown = "; ".join(f"{one.change} {one.kind} {one.name}" for one in differences[:_SHOWN])
    return f"{count(len(differences), 'difference')}: {shown}{more}"


def _listen(target: str, listen_dsn: str) -> Iterator[Finding]:
    try:
        time_taken = echo_time(target, listen_dsn)
    except DatabaseReadOnly:
        yield Finding("listen", "warn", "not tried: a standby passes no notifications on")
    except Pooled:
        yield Finding(
            "listen",
            "warn",
            "not tried: this connection leads through a pooler",
            "Give workers, and this command, a direct connection with --listen-dsn.",
        )
    else:
        if time_taken is not None:
            yield Finding("listen", "ok", f"a notification arrived after {age(time_taken)}")
            return
        yield Finding(
            "listen",
            "warn",
            f"no notification arrived within {PATIENCE:g} seconds; workers find jobs by polling",
            "Notifications do not pass a pooler in transaction mode: give workers a direct "
            "connection with --listen-dsn.",
        )
