"""The operator: one object from which everything can be asked and done."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from trunkline.db.calls.checks import health
from trunkline.db.pool import AsyncPool
from trunkline.model import HealthCheck
from trunkline.operate._async.activity import AsyncActivity
from trunkline.operate._async.breakers import AsyncBreakers
from trunkline.operate._async.dead import AsyncDeadLetters
from trunkline.operate._async.duties import AsyncDuties
from trunkline.operate._async.jobs import AsyncOperatedJobs
from trunkline.operate._async.limits import AsyncLimits
from trunkline.operate._async.log import AsyncLog
from trunkline.operate._async.queues import AsyncQueues
from trunkline.operate._async.quotas import AsyncQuotas
from trunkline.operate._async.schedules import AsyncSchedules
from trunkline.operate._async.session import AsyncSession
from trunkline.operate._async.settings import AsyncSettings, AsyncTasks
from trunkline.operate._async.workers import AsyncWorkers

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
        self.queues = AsyncQueues(session)
        self.limits = AsyncLimits(session)
        self.quotas = AsyncQuotas(session)
        self.breakers = AsyncBreakers(session)
        self.schedules = AsyncSchedules(session)
        self.workers = AsyncWorkers(session)
        self.duties = AsyncDuties(session)
        self.settings = AsyncSettings(session)
        self.tasks = AsyncTasks(session)
        self.activity = AsyncActivity(session)
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

    async def health(self) -> list[HealthCheck]:
        """Return the checks of the engine about itself: duties, partitions, deferred jobs."""
        return await self._session.run(health())

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
