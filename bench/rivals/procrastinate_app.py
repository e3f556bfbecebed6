"""Procrastinate's application, run in its own environment; PG* variables name the database."""

import asyncio

from procrastinate import (  # type: ignore[import-not-found, unused-ignore]
    App,
    PsycopgConnector,
)

from bench.apps.slate import WORK_SECONDS, open_slate

__all__ = ["app", "noop"]

app = App(connector=PsycopgConnector(min_size=10, max_size=20))


@app.task(name="noop")  # type: ignore[untyped-decorator, unused-ignore]
async def noop(number: int) -> None:
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)
