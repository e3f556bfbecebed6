"""How an attempt begins and ends: log lines, and one commit of everything it wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.types.json import Jsonb

from trunkline import Context, Discard, Snooze
from trunkline.errors import StaleAttempt
from trunkline_profiles.clinical.handlers.problems import BadDocument, CannotRun

__all__ = ["Outcome", "ask", "at_work", "finish", "patient_of", "stored_file"]

# Every query passes the attempt: a worker reads and writes only data of jobs it has claimed.
_ATTEMPT: Final = "p_job => %(job)s, p_attempt => %(attempt)s, p_worker => %(worker)s"
_FILE: Final = f"select * from clinical.stage_file({_ATTEMPT})"  # noqa: S608 - a constant
_RECORD: Final = f"""
select clinical.write_record({_ATTEMPT}, p_kind => %(kind)s, p_body => %(body)s)
"""
_FINISH: Final = f"select clinical.finish_stage({_ATTEMPT}, p_result => %(result)s)"

# The SQLSTATE of clinical.refuse('stale_stage').
_STALE: Final = "CP015"
# Seconds to postpone a job that this worker cannot run; another worker may take it then.
_CANNOT_RUN: Final = 300


@contextmanager
def at_work(ctx: Context) -> Iterator[None]:
    """Log the work, and turn a problem into a dead letter, a postponement or another attempt."""
    ctx.log.info("started", extra={"worker": ctx.worker, "patient": ctx.tenant})
    try:
        yield
    except BadDocument as error:
        raise Discard(str(error)) from error
    except CannotRun as error:
        # Neither a refusal nor a failed attempt: the installation is at fault, so log it.
        ctx.log.error("this worker cannot run the job: %s", error)
        raise Snooze(_CANNOT_RUN, str(error)) from error
    ctx.log.info("done")


def patient_of(ctx: Context) -> UUID:
    """The patient of the job. The folder follows from it, never from the payload."""
    if ctx.tenant is None:
        raise BadDocument("The job belongs to no patient")
    return UUID(ctx.tenant)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a stage."""

    # The record and its kind.
    kind: str
    body: dict[str, Any]
    # The job's result, if it is not the record.
    result: dict[str, Any] | None = None
    # Writes the files for the following stages, in the same place for every attempt.
    leave: Callable[[], Awaitable[None]] | None = None


async def finish(ctx: Context, outcome: Outcome) -> dict[str, Any]:
    """Write the record, settle the stage and complete the job, all or nothing."""
    result = outcome.body if outcome.result is None else outcome.result
    async with ctx.transaction() as connection:
        await ask(ctx, connection, _FINISH, result=Jsonb(result))
        await ask(ctx, connection, _RECORD, kind=outcome.kind, body=Jsonb(outcome.body))
        if outcome.leave is not None:
            # Not earlier: a worker that lost the job must not overwrite another worker's file.
            await outcome.leave()
        ctx.result = result
    return result


async def stored_file(ctx: Context) -> tuple[str, dict[str, Any]]:
    """Return where the job's file is stored, and its type and size as the uploader stated them."""
    row = None
    with suppress(psycopg.Rollback):
        async with ctx.transaction() as connection:
            row = await (await ask(ctx, connection, _FILE)).fetchone()
            # Roll back: nothing was written, and the job must not be completed here.
            raise psycopg.Rollback
    if row is None:
        raise BadDocument("The patient of the job has no such file")
    path, media_type, size = row
    facts = {"mime_type": media_type, "size_bytes": size}
    return path, {name: value for name, value in facts.items() if value is not None}


async def ask(
    ctx: Context, connection: AsyncConnection[Any], query: str, **more: Any
) -> AsyncCursor[Any]:
    """Query the database for this attempt; raises StaleAttempt if it is no longer ours."""
    attempt = {"job": ctx.job_id, "attempt": ctx.attempt, "worker": ctx.worker}
    try:
        return await connection.execute(query.encode(), attempt | more)
    except psycopg.Error as error:
        if error.sqlstate != _STALE:
            raise
        raise StaleAttempt(
            "the attempt is no longer yours", hint="Stop the work and discard its result."
        ) from error
