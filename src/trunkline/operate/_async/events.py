"""Events that jobs wait for."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from trunkline.db.call import json_text
from trunkline.db.calls import steps
from trunkline.model import SentEvent
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id

__all__ = ["AsyncEvents"]


class AsyncEvents:
    """Events that jobs wait for; `operator.events`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def send(
        self,
        name: str,
        payload: Any = None,
        *,
        job: UUID | str | None = None,
        key: str | None = None,
        event_id: str | None = None,
        tenant: str | None = None,
    ) -> SentEvent:
        """Send an event to a job or to a key; the first event of a name wins.

        The outcome is `delivered` if a waiting job continues, `stored` if none waits yet, and
        `already` if such an event was sent before.
        """
        target = None if job is None else as_job_id(job)
        return await self._session.run(
            steps.send_event(
                name, json_text(payload), job=target, key=key, event_id=event_id, tenant=tenant
            )
        )
