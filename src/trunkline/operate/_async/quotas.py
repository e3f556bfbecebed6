"""Quotas and budgets, and the usage ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from trunkline.db.calls import flow, quotas
from trunkline.model import JobUsage, QuotaStatus, UsageBy, UsageSum
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import as_job_id

__all__ = ["AsyncQuotas"]


class AsyncQuotas:
    """All quotas; `operator.quotas`."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    async def list(self, name: str | None = None) -> list[QuotaStatus]:
        """Return quotas by limit, the fullest keys first; one limit or bucket if named."""
        return await self._session.run(quotas.quotas(name))

    async def set(self, limit: str, parts: Mapping[str, Any], *, reason: str | None = None) -> bool:
        """Set the quota of a limit, for example `{"quota": 1000, "quota_period": "month"}`."""
        return await self._session.run(flow.set_limit(limit, parts), reason=reason)

    async def usage(
        self, by: UsageBy = "limit", since: datetime | None = None
    ) -> Sequence[UsageSum]:
        """Return what was settled since a day, summed by day, limit, task or tenant."""
        return await self._session.run(quotas.usage(by, since))

    async def usage_of_job(self, job: UUID | str) -> Sequence[JobUsage]:
        """Return what a job used, by attempt and limit."""
        return await self._session.run(quotas.usage_of_job(as_job_id(job)))
