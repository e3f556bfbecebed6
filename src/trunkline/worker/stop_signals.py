"""The signals that ask a worker to stop."""

import signal
import sys

__all__ = ["STOP_SIGNALS", "stop_signals"]

STOP_SIGNALS: tuple[signal.Signals, ...] = (signal.SIGTERM, signal.SIGINT)
if sys.platform != "win32":
    # A terminal that closes, or a connection over SSH that breaks.
    STOP_SIGNALS += (signal.SIGHUP,)


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals to handle: all of them, but SIGHUP only if nohup does not ignore it."""
    return tuple(
        number
        for number in STOP_SIGNALS
        if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN
    )
