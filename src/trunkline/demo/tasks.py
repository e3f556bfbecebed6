"""The tasks of the demo. A handler's effect is a row that commits with its completion."""

from __future__ import annotations

import asyncio

from trunkline import Backoff, Context, Trunkline

QUEUE = "demo"
# Each completed job has written one effect, even if workers died. The account counts the effects.
EFFECT = "insert into demo_effects (job_id, attempt, task) values (%s, %s, %s)"

_QUICK = Backoff(base="200ms", factor=2, cap="2s", jitter=0.2)

app = Trunkline()


@app.task(queue=QUEUE, max_attempts=6)
async def receipt(ctx: Context, order: int) -> None:
    """Fast, like most jobs."""
    await _effect(ctx, {"order": order})


@app.task(queue=QUEUE, max_attempts=6, lease="30s")
async def report(ctx: Context, pages: int) -> None:
    """Slow, with progress: a killed worker leaves such jobs unfinished."""
    for page in range(pages):
        await ctx.progress(100 * page // pages, f"page {page + 1} of {pages}")
        await asyncio.sleep(0.15)
    await _effect(ctx, {"pages": pages})


@app.task(queue=QUEUE, max_attempts=6, backoff=_QUICK)
async def flaky(ctx: Context, failures: int) -> None:
    """Fails a few times before it succeeds, as calls to other services do."""
    if ctx.failures < failures:
        raise ConnectionError(f"the service closed the connection ({ctx.failures + 1})")
    await _effect(ctx, {"failures": ctx.failures})


@app.task(queue=QUEUE, max_attempts=3, backoff=_QUICK)
async def poison(reason: str) -> None:
    """Never succeeds: it ends as a dead letter with its errors, and delays no other job."""
    raise ValueError(reason)


@app.task(queue=QUEUE)
async def reminder(order: int) -> None:
    """Due in an hour; the producer cancels it."""
    raise AssertionError(f"the reminder of order {order} ran although it was cancelled")


async def _effect(ctx: Context, result: object) -> None:
    ctx.result = result
    async with ctx.transaction() as connection:
        await connection.execute(EFFECT, (ctx.job_id, ctx.attempt, ctx.task))
