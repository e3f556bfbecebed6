"""How an attempt begins and ends: with log lines, and with everything it wrote in one commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from trunkline import Context, Discard
from trunkline.profiles.clinical.handlers.problems import BadDocument

__all__ = ["at_work", "end", "finish", "patient_of"]

_RECORD: Final = """
select clinical.write_record(
  p_file => %(file)s, p_job => %(job)s, p_stage => %(stage)s, p_kind => %(kind)s, p_body => %(body)s
)
"""
# What the next stage calls is read where it is enqueued: its claim waits for that very limit.
_FINISH: Final = """
select clinical.finish_stage(
  p_job => %(job)s, p_attempt => %(attempt)s, p_worker => %(worker)s,
  p_result => %(result)s || jsonb_build_object('next_payload', jsonb_build_object('endpoints', (
    select coalesce(jsonb_object_agg(t.job_type, t.provider_name || '/' || t.api_endpoint), '{}')
    from clinical.job_types as t
    where t.api_endpoint is not null
  )))
)
"""


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


async def finish(
    ctx: Context,
    file: UUID,
    kind: str,
    body: dict[str, Any],
    *,
    result: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Write the record, enqueue the next stage and end, all or nothing."""
    async with ctx.transaction() as connection:
        return await end(ctx, connection, file, kind, body, result=result)


async def end(
    ctx: Context,
    connection: AsyncConnection[Any],
    file: UUID,
    kind: str,
    body: dict[str, Any],
    *,
    result: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The same within a transaction of the attempt."""
    told = body if result is None else result
    job = {"job": ctx.job_id, "attempt": ctx.attempt, "worker": ctx.worker}
    record = {"file": file, "job": ctx.job_id, "stage": ctx.task, "kind": kind}
    await connection.execute(_RECORD, record | {"body": Jsonb(body)})
    await connection.execute(_FINISH, job | {"result": Jsonb(told)})
    ctx.result = told
    return told
