"""The application of the measured worker: ``trunkline worker bench.apps.noop:app``."""

from bench.apps.slate import open_slate
from trunkline import Trunkline

__all__ = ["app", "noop"]

app = Trunkline()


@app.task
async def noop(number: int) -> None:
    """Do nothing but tell that it ran."""
    open_slate().note(number)
