"""The signals that ask a worker to stop."""

import signal
import sys

__all__ = ["STOP_SIGNALS", "stop_signals"]

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
