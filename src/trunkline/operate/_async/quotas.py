"""Quotas and budgets, and the usage ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from trunkline.db.calls import flow, quotas
from trunkline.model import QuotaStatus, UsageBy, UsageSum
from trunkline.operate._async.session import AsyncSession

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
