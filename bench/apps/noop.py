"""The application of the measured worker: ``trunkline worker bench.apps.noop:app``."""

import asyncio

from bench.apps.slate import WORK_SECONDS, open_slate
from trunkline import Trunkline

__all__ = ["app", "noop"]

app = Trunkline()


@app.task
async def noop(number: int) -> None:
    """Tell that it ran, and otherwise do nothing, or take the time it is told to."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)
