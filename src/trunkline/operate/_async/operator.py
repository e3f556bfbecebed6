"""The operator: one object from which everything can be asked and done."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from trunkline.db.pool import AsyncPool
from trunkline.operate._async.dead import AsyncDeadLetters
from trunkline.operate._async.jobs import AsyncOperatedJobs
from trunkline.operate._async.log import AsyncLog
from trunkline.operate._async.session import AsyncSession

__all__ = ["AsyncOperator"]


class AsyncOperator:
    """Asks and changes what an operator may. Connects at its first use.

    Without a connection string it uses TRUNKLINE_DSN, then the embedded server. The login needs the
    role trunkline_operator, or trunkline_reader for reading only. `actor` names the person behind
    the login in the operator log; `tenant` restricts the operator to one tenant.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        embedded: bool | None = None,
        actor: str | None = None,
        tenant: str | None = None,
        connections: int = 4,
    ) -> None:
        pool = AsyncPool(dsn, embedded=embedded, size=connections, name="trunkline operate")
        self._open(AsyncSession(pool, _settings(actor, None, tenant)))

    def _open(self, session: AsyncSession) -> None:
        self._session = session
        self.jobs = AsyncOperatedJobs(session)
        self.dead = AsyncDeadLetters(session)
        self.log = AsyncLog(session)

    def acting(
        self, actor: str | None = None, *, reason: str | None = None, tenant: str | None = None
    ) -> Self:
        """Return an operator that shares the connections and acts for a person or a tenant.

        What is not given stays as it is. A server makes one of these for each request.
        """
        other = object.__new__(type(self))
        changed = _settings(actor, reason, tenant)
        other._open(AsyncSession(self._session.pool, {**self._session.settings, **changed}))
        return other

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections, also for operators that `acting` returned."""
        await self._session.pool.close()


def _settings(actor: str | None, reason: str | None, tenant: str | None) -> dict[str, str]:
    given = {"trunkline.actor": actor, "trunkline.reason": reason, "trunkline.tenant": tenant}
    return {name: value for name, value in given.items() if value is not None}
