"""Follows what happens to jobs over the connection of a command, which survives a lost server."""

from __future__ import annotations

from datetime import datetime

from trunkline.cli.connection import Session
from trunkline.db.calls.recent import recently
from trunkline.model import Recently
from trunkline.operate._sync.follower import SyncFollower

__all__ = ["Follower"]


class Follower(SyncFollower):
    """Looks again and again, and reports what is new."""

    def __init__(
        self, session: Session, *, task: str | None, queue: str | None, states: frozenset[str]
    ) -> None:
        super().__init__(_Looks(session, task, queue), states=states)


class _Looks:
    def __init__(self, session: Session, task: str | None, queue: str | None) -> None:
        self._session = session
        self._task = task
        self._queue = queue

    def now(self) -> datetime:
        return self._session.persist(self._session.now)

    def look(self, since: datetime, most: int | None) -> Recently:
        call = recently(since, task=self._task, queue=self._queue, most=most)
        return self._session.persist(lambda: self._session.ask(call))
