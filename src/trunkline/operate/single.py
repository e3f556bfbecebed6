"""An operator's calls on one connection, for programs that make one call after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Final, TypeVar

from trunkline.db.address import address
from trunkline.db.call import Call
from trunkline.db.connect import connect
from trunkline.db.patient import CALL_PATIENCE, PatientConnection
from trunkline.db.runner import run, run_with
from trunkline.errors import DatabaseProblem, DatabaseUnreachable, TrunklineError

__all__ = ["PersistentCaller", "SingleCaller"]

T = TypeVar("T")

# Seconds between two attempts to reach a server that is away.
_PAUSE: Final = 1.0


class SingleCaller:
    """Makes each call once, on its own connection. Pass it to `SyncOperator.over`."""

    def __init__(
        self, target: str, *, name: str, on_error: Callable[[TrunklineError], None] | None = None
    ) -> None:
        self._target = target
        self._name = name
        self._on_error = on_error
        self._stack = ExitStack()
        self.connection = self._connect()

    @property
    def address(self) -> str:
        """Host, port and database, without credentials."""
        return address(self._target)

    def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run a call in its own transaction."""
        return self.run_with(call, {}, patience)

    def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run a call in a transaction that has these settings, and only this transaction."""
        self.connection.patience = patience
        try:
            if settings:
                return run_with(self.connection, call, settings)
            return run(self.connection, call)
        except TrunklineError as error:
            if self._on_error is not None:
                self._on_error(error)
            raise

    def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""
        return self.connection.prepare_threshold is None

    def reconnect(self) -> None:
        """Open the connection again if it was lost."""
        if self.connection.closed:
            self.connection = self._connect()

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()

    def _connect(self) -> PatientConnection:
        return self._stack.enter_context(connect(self._target, name=self._name))


class PersistentCaller:
    """Repeats each call until the server is back; for calls that only read.

    `on_lost` is called once for each time that the server is away, `on_back` when it is back.
    """

    def __init__(
        self,
        caller: SingleCaller,
        *,
        on_lost: Callable[[TrunklineError], None],
        on_back: Callable[[], None],
    ) -> None:
        self._caller = caller
        self._on_lost = on_lost
        self._on_back = on_back

    @property
    def address(self) -> str:
        """Host, port and database, without credentials."""
        return self._caller.address

    def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run a call in its own transaction."""
        return self.run_with(call, {}, patience)

    def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run a call in a transaction that has these settings, and only this transaction."""
        lost = False
        while True:
            try:
                self._caller.reconnect()
                answer = self._caller.run_with(call, settings, patience)
            except TrunklineError as error:
                if not _passes(error):
                    raise
                if not lost:
                    self._on_lost(error)
                    lost = True
                self._caller.close()
                time.sleep(_PAUSE)
            else:
                if lost:
                    self._on_back()
                return answer

    def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""
        return self._caller.is_pooled()

    def close(self) -> None:
        """Close the connection."""
        self._caller.close()


def _passes(error: TrunklineError) -> bool:
    if isinstance(error, DatabaseProblem):
        return error.retryable
    return isinstance(error, DatabaseUnreachable)
