"""The operator: one object with all verbs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from types import TracebackType
from typing import Self

from trunkline.artifacts import AsyncStore, open_store
from trunkline.db.calls.checks import health
from trunkline.db.calls.views import clock
from trunkline.db.pool import AsyncPool
from trunkline.model import Finding, HealthCheck
from trunkline.operate._async.activity import AsyncActivity
from trunkline.operate._async.artifacts import AsyncStoredFiles
from trunkline.operate._async.breakers import AsyncBreakers
from trunkline.operate._async.dead import AsyncDeadLetters
from trunkline.operate._async.diagnosis import diagnose
from trunkline.operate._async.duties import AsyncDuties
from trunkline.operate._async.events import AsyncEvents
from trunkline.operate._async.jobs import AsyncOperatedJobs
from trunkline.operate._async.keys import AsyncKeys
from trunkline.operate._async.limits import AsyncLimits
from trunkline.operate._async.log import AsyncLog
from trunkline.operate._async.queues import AsyncQueues
from trunkline.operate._async.quotas import AsyncQuotas
from trunkline.operate._async.schedules import AsyncSchedules
from trunkline.operate._async.session import AsyncCaller, AsyncSession
from trunkline.operate._async.settings import AsyncSettings, AsyncTasks
from trunkline.operate._async.workers import AsyncWorkers
from trunkline.operate._async.workflows import AsyncOperatedWorkflows

__all__ = ["AsyncOperator"]


class AsyncOperator:
    """Reads and changes what an operator may. Connects at its first use.

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
        self._open(AsyncSession(pool, _settings(actor, None, tenant)), AsyncStore(open_store))

    def _open(self, session: AsyncSession, store: AsyncStore) -> None:
        self._session = session
        self._store = store
        self.jobs = AsyncOperatedJobs(session)
        self.workflows = AsyncOperatedWorkflows(session)
        self.dead = AsyncDeadLetters(session)
        self.events = AsyncEvents(session)
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
        self.keys = AsyncKeys(session)
        self.artifacts = AsyncStoredFiles(session, store)

    @classmethod
    def over(
        cls,
        caller: AsyncCaller,
        *,
        actor: str | None = None,
        tenant: str | None = None,
        store: AsyncStore | None = None,
    ) -> Self:
        """Return an operator whose calls a program runs on its own connections.

        `store` is one that the program has opened; by default TRUNKLINE_STORE is opened when used.
        """
        operator = object.__new__(cls)
        session = AsyncSession(caller, _settings(actor, None, tenant))
        operator._open(session, store or AsyncStore(open_store))
        return operator

    def acting(
        self, actor: str | None = None, *, reason: str | None = None, tenant: str | None = None
    ) -> Self:
        """Return an operator that shares the connections and acts for a person or a tenant.

        Arguments that are None stay as they are. A server creates such an operator per request.
        """
        other = object.__new__(type(self))
        changed = _settings(actor, reason, tenant)
        session = AsyncSession(self._session.caller, {**self._session.settings, **changed})
        other._open(session, self._store)
        return other

    async def health(self) -> list[HealthCheck]:
        """Return the engine's checks of itself: duties, partitions, deferred jobs."""
        return await self._session.run(health())

    def diagnose(self) -> AsyncIterator[Finding]:
        """Check server, schema, role, clock, settings, duties, workers, jobs and disk space.

        It changes nothing and yields the findings of each check when it is done. What a role may
        not read is a finding. `trunkline doctor` prints them, with more about this machine.
        """
        return diagnose(self._session)

    async def now(self) -> datetime:
        """Return the time of the engine, by which jobs are due and leases end."""
        return await self._session.run(clock())

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
        await self._session.caller.close()


def _settings(actor: str | None, reason: str | None, tenant: str | None) -> dict[str, str]:
    settings = {"trunkline.actor": actor, "trunkline.reason": reason, "trunkline.tenant": tenant}
    return {name: value for name, value in settings.items() if value is not None}
