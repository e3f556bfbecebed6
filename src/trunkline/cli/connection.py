"""Talking to the server a command was given."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import Any, TypeVar, overload
from uuid import UUID

import click

from trunkline.cli.output import clean
from trunkline.db.address import UNKNOWN, address
from trunkline.db.call import Call
from trunkline.db.calls import read, views
from trunkline.db.connect import connect
from trunkline.db.dsn import resolve_ready
from trunkline.db.runner import run
from trunkline.errors import (
    DatabaseProblem,
    DatabaseUnreachable,
    TrunklineError,
    UnknownJob,
    UnknownTask,
    UnknownWorker,
)
from trunkline.model import Job

__all__ = ["Session", "find_job", "opened"]

T = TypeVar("T")

_PAUSE = 1.0
# The engine's own hints are for programs in SQL.
_HINTS = {
    UnknownTask.code: "Check the spelling: `trunkline tasks list` shows those there are. A worker "
    "registers the tasks of its application when it starts: trunkline worker APP",
    UnknownWorker.code: "See who is there with: trunkline workers list",
}


class Session:
    """One connection to a server, made anew when it breaks while something is watched."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._stack = ExitStack()
        self.connection: Any = self._connect()

    def ask(self, call: Call[T]) -> T:
        """Run a call; it commits by itself."""
        try:
            return run(self.connection, call)
        except (UnknownTask, UnknownWorker) as error:
            error.hint = _HINTS[error.code]
            raise

    def now(self) -> datetime:
        """The engine's time, which ages are told against."""
        return self.ask(views.clock())

    @overload
    def persist(self, look: Callable[[], T]) -> T: ...
    @overload
    def persist(self, look: Callable[[], T], *, until: Callable[[], bool]) -> T | None: ...
    def persist(
        self, look: Callable[[], T], *, until: Callable[[], bool] = lambda: False
    ) -> T | None:
        """Look, and while the server is away try again; only for what may be repeated.

        None if `until` became true before the server was back.
        """
        told = False
        while True:
            try:
                if self.connection.closed:
                    self.connection = self._connect()
                found = look()
            except TrunklineError as error:
                if not _passes(error):
                    raise
                if not told:
                    click.echo(
                        f"Lost the server: {clean(error)}. Trying again until it is back", err=True
                    )
                    told = True
                self.close()
                if until():
                    return None
                time.sleep(_PAUSE)
            else:
                if told:
                    click.echo("The server is back", err=True)
                return found

    def close(self) -> None:
        """Give the connection back."""
        self._stack.close()

    def _connect(self) -> Any:
        return self._stack.enter_context(connect(self.target, name="trunkline cli"))


@contextmanager
def opened(dsn: str | None) -> Iterator[Session]:
    """A session with the given server, else TRUNKLINE_DSN's, else the embedded one."""
    with resolve_ready(dsn) as target:
        session = Session(target)
        try:
            yield session
        except UNKNOWN as error:
            error.detail.setdefault("server", address(target))
            raise
        finally:
            session.close()


def find_job(session: Session, job_id: UUID) -> Job:
    """One job, or the refusal that it is not known."""
    found = session.ask(read.job(job_id))
    if found is None:
        raise UnknownJob(
            "unknown job",
            detail={"job": str(job_id)},
            hint="Check the id: `trunkline jobs list` shows the newest ones. Finished jobs are "
            "removed after the retention time, and jobs of other tenants are not shown.",
        )
    return found


def _passes(error: TrunklineError) -> bool:
    if isinstance(error, DatabaseProblem):
        return error.retryable
    return isinstance(error, DatabaseUnreachable)
