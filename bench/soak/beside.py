"""Something that goes on in a thread while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["beside"]


@contextmanager
def beside(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Run it until the event is set, at the end of the block, where its error is raised too."""
    stop = threading.Event()
    failures: list[Exception] = []

    def run() -> None:
        try:
            work(stop)
        except Exception as error:  # noqa: BLE001 - raised again where the block ends
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
