"""A time limit on whatever is done, so that nobody can hang the run."""

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TookTooLong", "within"]

# Zero would be no limit.
_AT_ONCE = 0.001


class TookTooLong(BaseException):
    """The limit was reached. No plain exception: code of others must not take it for its own."""


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """Interrupt the block after so long, whatever it waits for. Only in the main thread."""

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
            # A limit around this one goes on with what is left of it.
            rest = outer - (time.monotonic() - begin)
            signal.setitimer(signal.ITIMER_REAL, max(rest, _AT_ONCE))
