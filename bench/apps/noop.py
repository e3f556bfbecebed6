"""The application of the measured worker: ``trunkline worker bench.apps.noop:app``."""

import asyncio
import os

from bench.apps.slate import WORK_SECONDS, open_slate
from trunkline import Trunkline

__all__ = ["LIMIT_VARIABLE", "app", "noop"]

# The name of a limit that its jobs take from; none without it.
LIMIT_VARIABLE = "TRUNKLINE_BENCH_LIMIT"
_LIMIT = os.environ.get(LIMIT_VARIABLE)

app = Trunkline()


@app.task(limit=_LIMIT or [])
async def noop(number: int) -> None:
    """Tell that it ran, and otherwise do nothing, or take the time it is told to."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)
