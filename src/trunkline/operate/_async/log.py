"""The operator log: what operators changed, and why."""

from __future__ import annotations

from trunkline.db.calls.operator_log import operator_log
from trunkline.model import LogEntry
from trunkline.operate._async.session import AsyncSession

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
        limit: int = 100,
        before: int | None = None,
    ) -> list[LogEntry]:
        """Return lines, newest first; `before` is the `log_id` at the end of the page before."""
        call = operator_log(
            limit=limit,
            before=before,
            action=action,
            kind=kind,
            object_name=object_name,
            actor=actor,
        )
        return await self._session.run(call)
