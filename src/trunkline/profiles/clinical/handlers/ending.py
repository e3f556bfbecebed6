"""How an attempt begins and ends: with log lines, and with everything it wrote in one commit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from trunkline import Context, Discard
from trunkline.errors import StaleAttempt
from trunkline.profiles.clinical.handlers.problems import BadDocument

__all__ = ["Outcome", "at_work", "end", "finish", "patient_of"]

_RECORD: Final = """
select clinical.write_record(
  p_file => %(file)s, p_job => %(job)s, p_stage => %(stage)s, p_kind => %(kind)s, p_body => %(body)s
)
"""
_FINISH: Final = """
select clinical.finish_stage(
  p_job => %(job)s, p_attempt => %(attempt)s, p_worker => %(worker)s, p_result => %(result)s
)
"""

# Of clinical.refuse('stale_stage').
_STALE: Final = "CP015"


@contextmanager
def at_work(ctx: Context) -> Iterator[None]:
    """Tell the log; what no further attempt can help makes the job a dead letter at once."""
    ctx.log.info("started", extra={"worker": ctx.worker, "patient": ctx.tenant})
    try:
        yield
    except BadDocument as error:
        raise Discard(str(error)) from error
    ctx.log.info("done")


def patient_of(ctx: Context) -> UUID:
    """The patient whose job it is: no payload says whose folder is used."""
    if ctx.tenant is None:
        raise BadDocument("The job belongs to no patient")
    return UUID(ctx.tenant)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a stage came to."""

    # The record, with its kind.
    kind: str
    body: dict[str, Any]
    # What the job tells, if it is not the record.
    result: dict[str, Any] | None = None
    # Leaves what the following stages need, where another attempt would leave its own.
    leave: Callable[[], Awaitable[None]] | None = None


async def finish(ctx: Context, file: UUID, outcome: Outcome) -> dict[str, Any]:
    """Write the record, enqueue the next stage and end, all or nothing."""
    async with ctx.transaction() as connection:
        return await end(ctx, connection, file, outcome)


async def end(
    ctx: Context, connection: AsyncConnection[Any], file: UUID, outcome: Outcome
) -> dict[str, Any]:
    """The same within a transaction of the attempt."""
    told = outcome.body if outcome.result is None else outcome.result
    job = {"job": ctx.job_id, "attempt": ctx.attempt, "worker": ctx.worker}
    record = {"file": file, "job": ctx.job_id, "stage": ctx.task, "kind": outcome.kind}
    try:
        await connection.execute(_FINISH, job | {"result": Jsonb(told)})
    except psycopg.Error as error:
        if error.sqlstate != _STALE:
            raise
        raise StaleAttempt(
            "the attempt is no longer yours", hint="Stop the work and discard its result."
        ) from error
    await connection.execute(_RECORD, record | {"body": Jsonb(outcome.body)})
    if outcome.leave is not None:
        # Not before: whoever lost the job must not write over what another one left.
        await outcome.leave()
    ctx.result = told
    return told
