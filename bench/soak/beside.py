"""Runs a function in a thread during a block."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["beside"]


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run it until the end of the block, which sets the event and raises the function's error."""
    stop = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            work(stop)
        except Exception as error:  # noqa: BLE001 - raised again at the end of the block
            failures.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failures:
        raise failures[0]
