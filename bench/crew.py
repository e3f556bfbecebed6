"""Processes that work at the same time: they get ready, start at one moment, answer at the end."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["run_together", "wait_until"]

# Processes share the monotonic clock of the machine.
_HEAD_START = 0.05


def run_together[T](count: int, prepare: Callable[..., Callable[[float], T]], *args: Any) -> list[T]:
    ...


def wait_until(moment: float) -> None:
    """Sleep until the monotonic clock shows so much."""
    rest = moment - time.monotonic()
    if rest > 0:
        time.sleep(rest)
