"""Connections that stop waiting for a silent server.

Keepalives detect a peer whose machine is gone. A proxy, a pooler or a frozen server may still
acknowledge packets and never answer: only a deadline of the client ends that wait.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import psycopg

from trunkline.db.loss import is_loss_state, mark_own

__all__ = [
    "CALL_PATIENCE",
    "PING_PATIENCE",
    "AsyncPatientConnection",
    "PatientConnection",
    "silence",
]

T = TypeVar("T")

# The deadline of one call of the engine by a client. On a healthy server no call takes a second.
CALL_PATIENCE: Final = 30.0
# The deadline of a call that only checks whether the server answers.
PING_PATIENCE: Final = 5.0

_TimedOut = psycopg.errors._WaitTimeout  # noqa: SLF001 - as the documentation of wait() names it


class PatientConnection(psycopg.Connection[Any]):
    """Waits no longer than its patience for an answer. None, for handlers, means no deadline."""

    patience: float | None = None
    # Whether a call lost the database since this was last reset.
    lost = False

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """See psycopg. Closes a silent connection: cancelling would wait for the server again."""
        try:
            return super().wait(gen, interval, self.patience if timeout is None else timeout)
        except _TimedOut as error:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise _own(self, psycopg.OperationalError(silence(self.patience))) from error
        except psycopg.Error as error:
            _own(self, error)
            raise


class AsyncPatientConnection(psycopg.AsyncConnection[Any]):
    """The asynchronous form of `PatientConnection`."""

    patience: float | None = None
    lost = False

    def __del__(self, _warn: Any = None) -> None:
        # An event loop may end before its connections are closed, for example if a program calls
        # asyncio.run twice. So close the connection without psycopg's warning.
        pgconn = getattr(self, "pgconn", None)
        if pgconn is not None:
            pgconn.finish()

    async def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """See `PatientConnection`."""
        try:
            return await super().wait(gen, interval, self.patience if timeout is None else timeout)
        except _TimedOut as error:
            if timeout is not None:
                raise
            self.pgconn.finish()
            raise _own(self, psycopg.OperationalError(silence(self.patience))) from error
        except psycopg.Error as error:
            _own(self, error)
            raise


def _own(connection: PatientConnection | AsyncPatientConnection, error: psycopg.Error) -> Any:
    """Mark an error as coming from our own database."""
    mark_own(error)
    connection.lost = connection.lost or is_loss_state(error)
    return error


def silence(patience: float | None) -> str:
    """Return the message for a server that does not answer."""
    return f"no answer from the server within {patience:g} seconds"
