"""The connections of an operator, and for whom the operator acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from trunkline.db.address import UNKNOWN
from trunkline.db.call import Call
from trunkline.db.patient import CALL_PATIENCE
from trunkline.db.pool import AsyncPool

__all__ = ["AsyncSession"]

T = TypeVar("T")


class AsyncSession:
    """Runs calls with the actor, the reason and the tenant of an operator."""

    def __init__(self, pool: AsyncPool, settings: Mapping[str, str]) -> None:
        self.pool = pool
        self.settings = settings

    async def run(
        self, call: Call[T], *, reason: str | None = None, patience: float = CALL_PATIENCE
    ) -> T:
        """Run a call in its own transaction; the reason goes to the operator log."""
        settings = dict(self.settings)
        if reason is not None:
            settings["trunkline.reason"] = reason
        try:
            if settings:
                return await self.pool.run_with(call, settings, patience)
            return await self.pool.run(call, patience)
        except UNKNOWN as error:
            # The name may be misspelt, or the job may be on another server.
            error.detail["server"] = self.pool.address
            raise
