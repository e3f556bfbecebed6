"""Idle workers, which set a flag to be notified, and workers that the engine considers gone."""

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
    """Return a value that changes when the only flag is written again."""
    row = superuser.execute("select xmin::text from trunkline_internal.sleepers").fetchone()
    assert row is not None
    version: str = row[0]
    return version


def declare_gone(superuser: Superuser) -> None:
    """Mark all workers as gone and remove their flags, as reclaim does with silent ones."""
    superuser.execute("update trunkline_internal.workers set state = 'gone'")
    superuser.execute("delete from trunkline_internal.sleepers")
