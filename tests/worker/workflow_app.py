"""Handlers of workflow steps; those with process=True must be importable."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trunkline import Context, Results, SyncContext, Trunkline, WorkflowEnd

app = Trunkline()


@dataclass
class Page:
    number: int
    text: str


@app.task
async def scan(count: int) -> list[int]:
    return list(range(1, count + 1))


@app.task(max_attempts=1)
def read(page: int, torn: int = 0) -> Page:
    if page == torn:
        raise ValueError(f"page {page} is torn")
    return Page(page, "x" * page)


@app.task
async def title(page: Page) -> str:
    return f"{page.number}:{page.text}"


@app.task
async def join_async(ctx: Context, pages: Results[Page], first: Page | None = None) -> Any:
    place = await ctx.workflow()
    numbers = [page.number async for page in pages]
    last = (await pages.at(-1)).number if pages else None
    return [place.name, place.step, place.generation, len(pages), sum(numbers), last]


@app.task
def join_thread(ctx: SyncContext, pages: Results[Page]) -> Any:
    place = ctx.workflow()
    numbers = [page.number for page in pages]
    return [place.name, place.step, place.generation, len(pages), sum(numbers), pages[-1].number]


@app.task(process=True)
def join_process(ctx: SyncContext, pages: Results[Page]) -> Any:
    place = ctx.workflow()
    numbers = [page.number for page in pages]
    return [place.name, place.step, place.generation, len(pages), sum(numbers), pages[-1].number]


@app.task(process=True)
def double(pages: list[int]) -> int:
    return 2 * len(pages)


@app.task
def echo(value: Any) -> Any:
    return value


@app.task(max_attempts=1)
def strict(numbers: Results[int]) -> int:
    return sum(numbers)


@app.task(max_attempts=1)
def one_number(number: int) -> int:
    return number


@app.task
def ended(workflow: WorkflowEnd, to: str = "") -> Any:
    failed = [[item.step, item.item, item.reason] for item in workflow.failed]
    return [workflow.name, workflow.state, workflow.generation, failed]


@app.task
async def forever(ctx: Context) -> None:
    while True:
        await ctx.progress(1)


@app.task(max_attempts=1)
def fails_until(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")
