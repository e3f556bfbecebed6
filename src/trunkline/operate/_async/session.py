"""The connections of an operator, with the person and tenant for whom the operator acts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

from trunkline.db.address import UNKNOWN
from trunkline.db.call import Call
from trunkline.db.patient import CALL_PATIENCE

__all__ = ["AsyncCaller", "AsyncSession"]

T = TypeVar("T")


class AsyncCaller(Protocol):
    """What runs the calls of an operator: a pool, or a connection that a program keeps itself."""

    @property
    def address(self) -> str:
        """Host, port and database of the server, without credentials."""

    async def run(self, call: Call[T], patience: float = CALL_PATIENCE) -> T:
        """Run one call in its own transaction; abandon a server that is silent for so long."""

    async def run_with(
        self, call: Call[T], settings: Mapping[str, str], patience: float = CALL_PATIENCE
    ) -> T:
        """Run one call in a transaction that has these settings, and only this transaction."""

    async def is_pooled(self) -> bool:
        """Return whether a pooler is between us and the server."""

    async def close(self) -> None:
        """Close the connections."""


class AsyncSession:
    """Runs calls with the actor, the reason and the tenant of an operator."""

    def __init__(self, caller: AsyncCaller, settings: Mapping[str, str]) -> None:
        self.caller = caller
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
                return await self.caller.run_with(call, settings, patience)
            return await self.caller.run(call, patience)
        except UNKNOWN as error:
            # The name may be misspelt, or the job may be on another server.
            error.detail["server"] = self.caller.address
            raise
