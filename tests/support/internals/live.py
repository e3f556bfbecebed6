"""Flags of followers and emitted output."""

from typing import Any
from uuid import UUID

import psycopg

__all__ = ["age_ends", "age_output", "chunks", "expire_flags", "flag_version", "flags"]


def flags(superuser: psycopg.Connection[Any]) -> set[UUID]:
    """The jobs and workflows that are flagged as followed."""
    rows = superuser.execute("select followed_id from trunkline_internal.followed").fetchall()
    return {row[0] for row in rows}


def expire_flags(superuser: psycopg.Connection[Any]) -> None:
    """Let all flags end now."""
    superuser.execute("update trunkline_internal.followed set until = trunkline.clock()")


def chunks(superuser: psycopg.Connection[Any]) -> list[tuple[int, int, str]]:
    """Emitted output: attempt, number, text."""
    return superuser.execute(
        "select attempt, number, chunk from trunkline_internal.emitted_chunks"
        " order by job_id, attempt, number"
    ).fetchall()


def flag_version(superuser: psycopg.Connection[Any]) -> str:
    """A value that changes when the only flag is written again."""
    row = superuser.execute("select xmin::text from trunkline_internal.followed").fetchone()
    assert row is not None
    version: str = row[0]
    return version


def age_output(superuser: psycopg.Connection[Any], minutes: int) -> None:
    """Make emitted output older."""
    superuser.execute(
        "update trunkline_internal.emitted_chunks"
        " set emitted_at = emitted_at - make_interval(mins => %s)",
        (minutes,),
    )


def age_ends(superuser: psycopg.Connection[Any], minutes: int) -> None:
    """Let finished jobs have ended earlier, which the guard of a test database would refuse."""
    superuser.execute("set session_replication_role = replica")
    superuser.execute(
        "update trunkline_internal.finished"
        " set finished_at = finished_at - make_interval(mins => %s)",
        (minutes,),
    )
    superuser.execute("reset session_replication_role")
