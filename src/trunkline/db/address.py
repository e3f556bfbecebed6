"""The address of a server, as messages name it."""

from __future__ import annotations

import contextlib
from typing import Final

from psycopg import Error, pq
from psycopg.conninfo import conninfo_to_dict

from trunkline.errors import (
    TrunklineError,
    UnknownJob,
    UnknownLimit,
    UnknownQueue,
    UnknownSchedule,
    UnknownTask,
    UnknownWorker,
)

__all__ = ["UNKNOWN", "address"]

# Errors about a name that may exist on another server. Their messages name the server used.
UNKNOWN: Final = (
    UnknownJob,
    UnknownLimit,
    UnknownQueue,
    UnknownSchedule,
    UnknownTask,
    UnknownWorker,
)


def address(dsn: str) -> str:
    """Return host, port and database of a connection string, never its user or password.

    The embedded server of TRUNKLINE_HOME is named with its folder, even if its connection string
    was passed explicitly.
    """
    folder = _embedded_folder(dsn)
    if folder is not None:
        return f"embedded in {folder}"
    try:
        fields = {name: str(value) for name, value in conninfo_to_dict(dsn).items() if value}
    except Error:
        return "an unreadable connection string"
    if "service" in fields and "host" not in fields:
        return f"service {fields['service']}"
    # Values that libpq takes from PGHOST, PGPORT, PGDATABASE and its own defaults.
    defaults = {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val
    }
    fields = defaults | fields
    host = fields.get("host") or fields.get("hostaddr") or "local socket"
    name = fields.get("dbname") or fields.get("user", "")
    return ", ".join(
        f"{server}:{port}/{name}" for server, port in _paired(host, fields.get("port", "5432"))
    )


def _paired(hosts: str, ports: str) -> list[tuple[str, str]]:
    """Pair hosts with ports; several hosts have one port each or share one."""
    names, numbers = hosts.split(","), ports.split(",")
    if len(numbers) != len(names):
        numbers = [numbers[0]] * len(names)
    return list(zip(names, numbers, strict=True))


def _embedded_folder(dsn: str) -> str | None:
    with contextlib.suppress(TrunklineError, OSError, ImportError):
        # The package cannot be imported on every platform.
        from trunkline.embedded import service  # noqa: PLC0415

        if dsn in {service.dsn(), service.dsn(tcp=True)}:
            return str(service.status().home)
    return None
