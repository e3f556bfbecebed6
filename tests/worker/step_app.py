"""Handlers with steps that run in processes of their own."""

import contextlib
import os
import time
from pathlib import Path
from typing import Any

from trunkline import Discard, Retry, SyncContext, Trunkline
from trunkline.errors import EventTimeout

app = Trunkline()


def number(value: int) -> int:
    return value


@app.task(process=True, max_attempts=3)
def counted(ctx: SyncContext) -> list[int]:
    """Two steps whose arguments differ in each attempt: the first attempt's results are kept."""
    first = ctx.step("pid", number, ctx.attempt, on_change="reuse")
    second = ctx.step("pid", number, ctx.attempt + 1, on_change="reuse")
    if ctx.attempt == 1:
        raise Retry(0)
    return [first, second]


@app.task(process=True)
def pid() -> int:
    return os.getpid()


@app.task(process=True, max_attempts=1)
def waiting(ctx: SyncContext) -> list[Any]:
    """Waits for an event; the next attempt receives it."""
    answer = ctx.wait_for("go")
    return [answer, ctx.attempt, ctx.failures]


@app.task(process=True, max_attempts=1)
def impatient(ctx: SyncContext) -> str:
    try:
        ctx.wait_for("go", timeout="1h")
    except EventTimeout:
        return "late"
    return "in time"


@app.task(process=True, max_attempts=1)
def sleeping(ctx: SyncContext) -> list[int]:
    first = ctx.step("before", number, ctx.attempt, on_change="reuse")
    ctx.sleep(hours=1)
    return [first, ctx.attempt]


@app.task(process=True)
def napping(ctx: SyncContext) -> int:
    ctx.sleep(seconds=0.01)
    return ctx.attempt


@app.task(process=True)
def stubborn(ctx: SyncContext) -> str:
    with contextlib.suppress(BaseException):
        ctx.wait_for("go")
    return "too early" if ctx.attempt == 1 else "in time"


@app.task(process=True)
def based(ctx: SyncContext, gate: str) -> list[Any]:
    """All jobs of a workflow return the one whose attempt ran the step, which waits for a file."""

    def base() -> list[Any]:
        while not Path(gate).exists():
            time.sleep(0.02)
        return [str(ctx.job_id), 7]

    return ctx.once("base", base)


@app.task(process=True)
def double(number: int) -> int:
    return 2 * number


@app.task(process=True)
def upper(text: str) -> str:
    return text.upper()


@app.task(process=True)
def parent(ctx: SyncContext) -> list[Any]:
    requests: list[Any] = [double.request(1), upper.request("a"), double.request(2)]
    return [ctx.gather_jobs([*requests, upper.request("b")]), ctx.attempt]


@app.task(process=True)
def changing(ctx: SyncContext) -> list[int]:
    """Asks for fewer jobs in the second attempt."""
    return ctx.gather_jobs([double.request(n) for n in range(4 - ctx.attempt)])


@app.task(process=True)
def broken() -> None:
    raise Discard("broken")


@app.task(process=True, max_attempts=5)
def bereft(ctx: SyncContext) -> None:
    ctx.gather_jobs([broken.request()])
