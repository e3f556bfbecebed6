"""Artifacts: their ages, what waits to be removed, and the state of the sweep."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg

__all__ = [
    "age_published",
    "age_tombstones",
    "cursor_of",
    "end_lease",
    "expire",
    "make_removals_due",
    "make_sweep_due",
    "queue_removal",
    "refusing_changes",
    "run_duty",
    "usage_rows",
]

Superuser = psycopg.Connection[Any]


@contextmanager
def refusing_changes(superuser: Superuser, artifact: UUID) -> Iterator[None]:
    """Make every change of one artifact fail."""
    superuser.execute(
        "create function public.refuse_it() returns trigger language plpgsql as"
        " $$ begin raise exception 'no'; end $$"
    )
    superuser.execute(
        "create trigger refuse_it before update on trunkline_internal.artifacts for each row"
        f" when (old.artifact_id = '{artifact}') execute function public.refuse_it()"
    )
    try:
        yield
    finally:
        superuser.execute("drop function public.refuse_it() cascade")


def run_duty(superuser: Superuser) -> None:
    """Do the work of sweep_artifacts now."""
    superuser.execute("select trunkline_internal.duty_sweep_artifacts()")


def age_published(superuser: Superuser, by: str) -> None:
    """Make all artifacts older."""
    superuser.execute(
        "update trunkline_internal.artifacts set published_at = published_at - %s::interval", [by]
    )


def age_tombstones(superuser: Superuser, age: str) -> None:
    """Make deleted artifacts so old."""
    superuser.execute(
        "update trunkline_internal.artifacts set deleted_at = now() - %s::interval"
        " where deleted_at is not null",
        [age],
    )


def expire(superuser: Superuser, kind: str) -> None:
    """Let artifacts of a kind expire now."""
    superuser.execute(
        "update trunkline_internal.artifacts set expires_at = now() where kind = %s", [kind]
    )


def make_removals_due(superuser: Superuser) -> None:
    """Let every queued file be due."""
    superuser.execute("update trunkline_internal.file_removals set due_at = now()")


def queue_removal(superuser: Superuser, path: str) -> None:
    """Queue a file for removal."""
    superuser.execute(
        "insert into trunkline_internal.file_removals (path, queued_at, due_at, reason)"
        " values (%s, now(), now(), 'orphan')",
        [path],
    )


def usage_rows(superuser: Superuser) -> int:
    """Return how many changes of storage are not added up."""
    row = superuser.execute("select count(*) from trunkline_internal.storage_usage").fetchone()
    assert row is not None
    count: int = row[0]
    return count


def make_sweep_due(superuser: Superuser) -> None:
    """Let the next sweep begin now."""
    superuser.execute("update trunkline_internal.store_sweep set next_at = null")


def end_lease(superuser: Superuser) -> None:
    """Let the worker that sweeps be gone."""
    superuser.execute(
        "update trunkline_internal.store_sweep set leased_until = now() - interval '1 second'"
    )


def cursor_of(superuser: Superuser) -> str | None:
    """Return where the sweep of files continues."""
    row = superuser.execute("select file_cursor from trunkline_internal.store_sweep").fetchone()
    assert row is not None
    cursor: str | None = row[0]
    return cursor
