"""A handler with three steps that kills its own process at the point that the test names.

Points are `before N` (before step N is called), `inside N` (its effect is committed, its result is
not recorded) and `after N` (recorded).
"""

import os
import signal
from typing import Any

import psycopg

from trunkline import Backoff, Context, SyncContext, Trunkline
from trunkline.handler import JobContext

__all__ = ["app"]

app = Trunkline()

_AT_ONCE = Backoff(base=0, factor=1, cap=0, jitter=0)


def _die_at(point: str, ctx: JobContext) -> None:
    if ctx.attempt == 1 and os.environ["STEP_KILL"] == point:
        os.kill(os.getppid() if os.environ["STEP_KIND"] == "process" else os.getpid(), 9)
        signal.pause()


def _effect(step: int, ctx: JobContext) -> dict[str, Any]:
    with psycopg.connect(os.environ["TRUNKLINE_DSN"], autocommit=True) as connection:
        connection.execute(
            "insert into step_runs (step, attempt) values (%s, %s)", (step, ctx.attempt)
        )
        connection.execute(
            "insert into step_effects (step) values (%s) on conflict do nothing", (step,)
        )
    _die_at(f"inside {step}", ctx)
    return {"step": step, "attempt": ctx.attempt}


@app.task(max_attempts=5, backoff=_AT_ONCE, lease="6s")
async def loop(ctx: Context) -> list[Any]:
    results = []
    for step in (1, 2, 3):
        _die_at(f"before {step}", ctx)
        results.append(await ctx.step(f"step {step}", lambda: _effect(step, ctx)))  # noqa: B023
        _die_at(f"after {step}", ctx)
    return results


def _three(ctx: SyncContext) -> list[Any]:
    results = []
    for step in (1, 2, 3):
        _die_at(f"before {step}", ctx)
        results.append(ctx.step(f"step {step}", lambda: _effect(step, ctx)))  # noqa: B023
        _die_at(f"after {step}", ctx)
    return results


@app.task(max_attempts=5, backoff=_AT_ONCE, lease="6s")
def thread(ctx: SyncContext) -> list[Any]:
    return _three(ctx)


@app.task(max_attempts=5, backoff=_AT_ONCE, lease="6s", process=True)
def process(ctx: SyncContext) -> list[Any]:
    return _three(ctx)
