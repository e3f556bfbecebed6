"""The signals that ask a worker to stop."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["STOP_SIGNALS", "on_stop_signal", "stop_signals"]

STOP_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
if sys.platform != "win32":
    # Sent when a terminal closes or an SSH connection breaks.
    STOP_SIGNALS += (signal.SIGHUP,)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals to handle. Ignored ones stay ignored.

    A shell ignores SIGINT for its background jobs, and nohup ignores SIGHUP.
    """
    return tuple(
        number for number in STOP_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN
    )


@contextmanager
def on_stop_signal(act: Callable[[str], None]) -> Iterator[None]:
    """Call a function in the running event loop with the name of each stop signal.

    Only the main thread can handle signals; in other threads nothing is handled.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    numbers = stop_signals()
    for number in numbers:
        loop.add_signal_handler(number, act, signal.Signals(number).name)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
