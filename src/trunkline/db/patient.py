"""Connections that give a silent server up.

Keepalives notice a peer whose machine is gone. A proxy, a pooler or a frozen server still
acknowledges packets and never answers: only a deadline of our own ends that wait.
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

# For one call of the engine by a client; none of them takes a second on a server that is well.
CALL_PATIENCE: Final = 30.0
# For a sign of life.
PING_PATIENCE: Final = 5.0

_TimedOut = psycopg.errors._WaitTimeout  # noqa: SLF001 - as the documentation of wait() names it


class PatientConnection(psycopg.Connection[Any]):
    """Waits for an answer no longer than its patience; None, as handlers get it, waits for ever."""

    patience: float | None = None
    # Whether a call lost the database since this was last reset.
    lost = False

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """See psycopg; a silent connection is closed, not cancelled, which would wait again."""
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
    """The same, asynchronous."""

    patience: float | None = None
    lost = False

    def __del__(self, _warn: Any = None) -> None:
        # An event loop that ended took its connections along before anybody could close them; that
        # is no mistake of who runs asyncio twice, so the server is told and nobody is warned.
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
    """What is said of a server that does not answer."""
    return f"no answer from the server within {patience:g} seconds"
