"""The server that a command talks to, and an operator on it."""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import click

from trunkline.cli.output import clean
from trunkline.db.address import UNKNOWN
from trunkline.db.dsn import resolve_ready
from trunkline.db.patient import PatientConnection
from trunkline.errors import (
    Refusal,
    TrunklineError,
    UnknownDuty,
    UnknownJob,
    UnknownLimit,
    UnknownQueue,
    UnknownSchedule,
    UnknownSetting,
    UnknownTask,
    UnknownWorker,
)
from trunkline.operate import SyncOperator
from trunkline.operate.single import PersistentCaller, SingleCaller

__all__ = ["Session", "opened"]

# The engine and `trunkline.operate` give hints for programs.
_HINTS: Final = {
    UnknownJob.code: "Check the id: `trunkline jobs list` shows the newest jobs. Finished jobs are "
    "removed after the retention time, and jobs of other tenants are not shown.",
    UnknownDuty.code: "List the duties with: trunkline duties list",
    UnknownLimit.code: "List the limits with: trunkline limits list",
    UnknownQueue.code: "List the queues with: trunkline queues list",
    UnknownSchedule.code: "List the schedules with: trunkline schedules list",
    UnknownSetting.code: "List the settings with: trunkline settings list",
    UnknownTask.code: "Check the spelling: `trunkline tasks list` shows the known tasks. A worker "
    "registers the tasks of its application when it starts: trunkline worker APP",
    UnknownWorker.code: "List the workers with: trunkline workers list",
}


class Session:
    """One connection to a server.

    `operator` makes each call once. `watcher` repeats a call until the server is back; it is for
    calls that only read.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self._caller = SingleCaller(target, name="trunkline cli", on_error=_hint)
        self.operator = SyncOperator.over(self._caller, actor=_actor())
        self.watcher = SyncOperator.over(
            PersistentCaller(self._caller, on_lost=_report_lost, on_back=_report_back)
        )

    @property
    def address(self) -> str:
        """Host, port and database, without credentials."""
        return self._caller.address

    @property
    def connection(self) -> PatientConnection:
        """The connection that is open now."""
        return self._caller.connection

    def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""
        return self._caller.is_pooled()

    def close(self) -> None:
        """Close the connection."""
        self._caller.close()


@contextmanager
def opened(dsn: str | None) -> Iterator[Session]:
    """Open a session with the given server, else TRUNKLINE_DSN's, else the embedded one."""
    with resolve_ready(dsn) as target:
        session = Session(target)
        try:
            yield session
        except Refusal as error:
            # Also for errors that `trunkline.operate` raises without a call.
            _hint(error)
            if isinstance(error, UNKNOWN):
                error.detail.setdefault("server", session.address)
            raise
        finally:
            session.close()


def _hint(error: TrunklineError) -> None:
    error.hint = _HINTS.get(error.code, error.hint)


def _report_lost(error: TrunklineError) -> None:
    click.echo(f"Lost the server: {clean(error)}. Trying again until it is back", err=True)


def _report_back() -> None:
    click.echo("The server is back", err=True)


def _actor() -> str | None:
    """Return the person whose changes these are, for the operator log."""
    if actor := os.environ.get("TRUNKLINE_ACTOR"):
        return actor
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run under a number that has no name.
        return None
