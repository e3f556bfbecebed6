"""Handlers with large results; those with process=True must be importable."""

from pathlib import Path
from typing import Any

from trunkline import Context, Results, Retry, SyncContext, Trunkline

app = Trunkline()

# One is too large for the database, ten fit into a page, and none is like the others.
SIZE = 300_000


def text(number: int, size: int = SIZE) -> str:
    return f"{number}:" + "x" * size


@app.task
def write(number: int, size: int = SIZE) -> str:
    return text(number, size)


@app.task
async def listed(count: int, width: int) -> list[str]:
    return [f"{number:0{width}}" for number in range(count)]


@app.task
def document() -> dict[str, str]:
    return {"text": "x" * SIZE}


@app.task
def forge(reference: str) -> dict[str, str]:
    return {"$artifact": reference}


@app.task
async def one_async(value: str) -> list[Any]:
    return [value[:2], len(value)]


@app.task
def one_thread(value: str) -> list[Any]:
    return [value[:2], len(value)]


@app.task(process=True)
def one_process(value: str) -> list[Any]:
    return [value[:2], len(value)]


@app.task
def echo(value: Any) -> Any:
    return value


@app.task
async def many_async(values: Results[str]) -> list[Any]:
    last = await values.at(-1)
    return [[value[:2] async for value in values], last[:2]]


@app.task
def many_thread(values: Results[str]) -> list[Any]:
    return [[value[:2] for value in values], values[-1][:2]]


@app.task(process=True)
def many_process(values: Results[str]) -> list[Any]:
    return [[value[:2] for value in values], values[-1][:2]]


@app.task
def whole(values: Any) -> list[str]:
    return [value[:2] for value in values]


@app.task
def number_of(element: str) -> int:
    return int(element)


@app.task
def total(numbers: Results[int]) -> int:
    return sum(numbers)


@app.task
async def gather_async(ctx: Context, jobs: int) -> list[Any]:
    values = await ctx.gather_jobs([write.request(number) for number in range(jobs)])
    return [[value[:2], len(value)] for value in values]


@app.task
def gather_thread(ctx: SyncContext, jobs: int) -> list[Any]:
    values = ctx.gather_jobs([write.request(number) for number in range(jobs)])
    return [[value[:2], len(value)] for value in values]


@app.task(process=True)
def gather_process(ctx: SyncContext, jobs: int) -> list[Any]:
    values = ctx.gather_jobs([write.request(number) for number in range(jobs)])
    return [[value[:2], len(value)] for value in values]


def noted(log: str, size: int) -> str:
    with Path(log).open("a", encoding="utf-8") as lines:
        lines.write("run\n")
    return text(1, size)


@app.task(max_attempts=3)
async def step_async(ctx: Context, log: str, size: int) -> list[Any]:
    value = await ctx.step("ocr / page", noted, log, size)
    if ctx.attempt < 3:
        raise Retry(0)
    return [value[:2], len(value)]


@app.task(max_attempts=3)
def step_thread(ctx: SyncContext, log: str, size: int) -> list[Any]:
    value = ctx.step("ocr / page", noted, log, size)
    if ctx.attempt < 3:
        raise Retry(0)
    return [value[:2], len(value)]


@app.task(process=True, max_attempts=3)
def step_process(ctx: SyncContext, log: str, size: int) -> list[Any]:
    value = ctx.step("ocr / page", noted, log, size)
    if ctx.attempt < 3:
        raise Retry(0)
    return [value[:2], len(value)]


@app.task(max_attempts=1)
async def once_async(ctx: Context, log: str, size: int) -> list[Any]:
    value = await ctx.once("base data", noted, log, size)
    return [value[:2], len(value)]


@app.task(process=True, max_attempts=1)
def once_process(ctx: SyncContext, log: str, size: int) -> list[Any]:
    value = ctx.once("base data", noted, log, size)
    return [value[:2], len(value)]


@app.task
def in_transaction_thread(ctx: SyncContext) -> None:
    with ctx.transaction():
        ctx.result = text(7)


@app.task
async def in_transaction_async(ctx: Context) -> None:
    async with ctx.transaction():
        ctx.result = text(7)


@app.task(process=True)
def in_transaction_process(ctx: SyncContext) -> None:
    with ctx.transaction():
        ctx.result = text(7)
