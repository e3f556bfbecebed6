"""Signal handling that child processes of the tests inherit."""

import signal

__all__ = ["give_children_default_signals"]

# A shell without job control ignores the first two in a background job; nohup ignores the third.
_OFTEN_IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def give_children_default_signals() -> None:
    """Give child processes the default handling of signals that this process ignores.
    A program inherits ignored signals, but handlers are reset by ``exec``. So this replaces every
    ignored signal with a handler that does nothing, and this process still ignores it.
    """
    for number in _OFTEN_IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _ignore)


def _ignore(number: int, frame: object) -> None:
    """Do nothing."""
