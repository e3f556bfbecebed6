"""The operator log: what operators changed, and why."""

from __future__ import annotations

from datetime import datetime

from trunkline.db.calls.operator_log import operator_log
from trunkline.model import LogEntry
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import start_of_id

__all__ = ["AsyncLog"]


class AsyncLog:
    """The operator log; `operator.log`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(
        self,
        *,
        action: str | None = None,
        kind: str | None = None,
        object_name: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        before: int | None = None,
    ) -> list[LogEntry]:
        """Return lines, newest first; `before` is the last `log_id` of the previous page.

        `object_name` may be the start of an id, with 8 or more digits. `since` is inclusive,
        `until` is not.
        """
        call = operator_log(
            limit=limit,
            before=before,
            action=action,
            kind=kind,
            object_name=object_name,
            object_start=None if object_name is None else start_of_id(object_name),
            actor=actor,
            since=since,
            until=until,
        )
        return await self._session.run(call)
