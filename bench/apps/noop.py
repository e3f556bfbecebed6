"""The application of the measured worker: ``trunkline worker bench.apps.noop:app``."""

import asyncio
import os

from bench.apps.slate import WORK_SECONDS, open_slate
from trunkline import Trunkline

__all__ = ["KEYS", "KEYS_VARIABLE", "LIMIT_VARIABLE", "app", "keyed", "noop"]

# The name of a limit that its jobs take from; none without it.
LIMIT_VARIABLE = "TRUNKLINE_BENCH_LIMIT"
_LIMIT = os.environ.get(LIMIT_VARIABLE)
# So many values of a key, which its jobs carry and the name of the limit may have; none without it.
KEYS_VARIABLE = "TRUNKLINE_BENCH_KEYS"
KEYS = int(os.environ.get(KEYS_VARIABLE, "0"))

app = Trunkline()


@app.task(limit=_LIMIT if _LIMIT and not KEYS else [])
async def noop(number: int) -> None:
    """Tell that it ran, and otherwise do nothing, or take the time it is told to."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


@app.task(limit=_LIMIT if _LIMIT and KEYS else [])
async def keyed(number: int, key: str) -> None:  # noqa: ARG001
    """Do the same, for a key."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)
