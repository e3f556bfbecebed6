"""The application of the measured worker: ``trunkline worker bench.apps.noop:app``."""

import asyncio
import os

from bench.apps.slate import WORK_SECONDS, open_slate
from trunkline import Trunkline

__all__ = ["KEYS", "KEYS_VARIABLE", "LIMIT_VARIABLE", "app", "keyed", "noop"]

# The name of the limit of its jobs. If it is not set, they have none.
LIMIT_VARIABLE = "TRUNKLINE_BENCH_LIMIT"
_LIMIT = os.environ.get(LIMIT_VARIABLE)
# Number of key values. Jobs carry a key, which the limit's name may contain. Not set: no keys.
KEYS_VARIABLE = "TRUNKLINE_BENCH_KEYS"
KEYS = int(os.environ.get(KEYS_VARIABLE, "0"))

app = Trunkline()


@app.task(limit=_LIMIT if _LIMIT and not KEYS else [])
async def noop(number: int) -> None:
    """Record that it ran; then do nothing, or wait for the configured time."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)


@app.task(limit=_LIMIT if _LIMIT and KEYS else [])
async def keyed(number: int, key: str) -> None:  # noqa: ARG001
    """Do the same, for a key."""
    open_slate().note(number)
    if WORK_SECONDS:
        await asyncio.sleep(WORK_SECONDS)
