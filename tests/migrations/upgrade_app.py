"""The application of a worker that lives through an upgrade of the schema."""

import asyncio
from pathlib import Path

from trunkline import Trunkline

__all__ = ["app"]

app = Trunkline()


@app.task
async def wait(path: str) -> str:
    """Run until the file is there."""
    while not await asyncio.to_thread(Path(path).exists):
        await asyncio.sleep(0.01)
    return "done"
