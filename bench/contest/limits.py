"""A time limit for each step, so that no product can hang the run."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TookTooLong", "within"]

# Zero would be no limit.
_AT_ONCE = 0.001


class TookTooLong(BaseException):
    """The limit was reached. A BaseException, so that a product's code does not catch it."""


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Interrupt the block after this time, even if it waits. Works only in the main thread."""

    def interrupt(*_: object) -> None:
        raise TookTooLong(f"{what} took more than {seconds:.0f} s and was stopped")

    begin = time.monotonic()
    handler = signal.signal(signal.SIGALRM, interrupt)
    outer, _ = signal.setitimer(signal.ITIMER_REAL, max(seconds, _AT_ONCE))
    try:
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, handler)
        if outer:
            # An outer limit continues with its remaining time.
            rest = outer - (time.monotonic() - begin)
            signal.setitimer(signal.ITIMER_REAL, max(rest, _AT_ONCE))
