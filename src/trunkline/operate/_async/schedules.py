"""Schedules: jobs that are enqueued at certain times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from trunkline.db.calls import admin, views
from trunkline.errors import UnknownSchedule
from trunkline.model import ScheduleChange, ScheduleStatus
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncSchedules"]


class AsyncSchedules:
    """All schedules; `operator.schedules`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self) -> list[ScheduleStatus]:
        """Return every schedule with its next due time and its last run."""
        return await self._session.run(views.schedules())

    async def get(self, schedule: str) -> ScheduleStatus:
        """Return one schedule."""
        known = {status.schedule: status for status in await self.list()}
        if schedule not in known:
            raise UnknownSchedule(
                "unknown schedule",
                hint="List them with operator.schedules.list().",
                detail={"schedule": schedule, "known": [*known]},
            )
        return known[schedule]

    async def set(
        self,
        schedule: str,
        cron: str,
        task: str,
        *,
        payload: Mapping[str, Any] | None = None,
        time_zone: str = "UTC",
        queue: str | None = None,
        priority: int | None = None,
        tenant: str | None = None,
        missed: str = "once",
        paused: bool | None = None,
        reason: str | None = None,
    ) -> ScheduleChange:
        """Create a schedule, or replace it; with `paused=None` a pause stays as it is."""
        call = admin.set_schedule(
            schedule,
            cron,
            task,
            payload=payload or {},
            time_zone=time_zone,
            queue=queue,
            priority=priority,
            tenant=tenant,
            missed=missed,
            paused=paused,
        )
        return await self._session.run(call, reason=reason)

    async def pause(self, schedule: str, *, reason: str | None = None) -> ScheduleChange:
        """Enqueue nothing until the schedule is resumed."""
        return await self._session.run(admin.pause_schedule(schedule), reason=reason)

    async def resume(self, schedule: str, *, reason: str | None = None) -> ScheduleChange:
        """Continue from now on; due times during the pause do not count as missed."""
        return await self._session.run(admin.resume_schedule(schedule), reason=reason)

    async def remove(self, schedule: str, *, reason: str | None = None) -> None:
        """Remove a schedule; the jobs that it has enqueued stay."""
        await self._session.run(admin.remove_schedule(schedule), reason=reason)

    async def next_due(
        self,
        cron: str,
        *,
        time_zone: str = "UTC",
        after: datetime | None = None,
        count: int = 5,
    ) -> Sequence[datetime]:
        """Return when a cron expression is due next."""
        return await self._session.run(admin.next_due(cron, time_zone, after, count))
