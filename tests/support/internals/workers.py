"""Idle workers, who leave a flag to be notified, and workers whom the engine has given up."""

from typing import Any

import psycopg

__all__ = ["declare_gone", "flag_version", "sleep_flags"]

Superuser = psycopg.Connection[Any]


def sleep_flags(superuser: Superuser, worker: str | None = None) -> list[tuple[str, str]]:
    """Return the flags of idle workers, or of one of them, as (queue, worker)."""
    return superuser.execute(
        "select queue, worker from trunkline_internal.sleepers"
        " where worker = coalesce(%s, worker) order by queue, worker",
        (worker,),
    ).fetchall()


def flag_version(superuser: Superuser) -> str:
    """Return what changes when the only flag is written again."""
    ((version,),) = superuser.execute("select xmin::text from trunkline_internal.sleepers")
    found: str = version
    return found


def declare_gone(superuser: Superuser) -> None:
    """Let all workers be gone and their flags removed, as reclaim does with silent ones."""
    superuser.execute("update trunkline_internal.workers set state = 'gone'")
    superuser.execute("delete from trunkline_internal.sleepers")
