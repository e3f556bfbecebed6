"""The checks of a server, one after the other."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from trunkline.db.calls import checks, dead, views
from trunkline.errors import DatabaseProblem, SchemaForbidden
from trunkline.model import Finding
from trunkline.operate import findings
from trunkline.operate._async.session import AsyncSession

__all__ = ["diagnose"]

_NEEDED_ROLES: Final = "trunkline_operator or trunkline_reader"
# Dead letters are read up to this number.
_DEAD: Final = 1000


async def diagnose(session: AsyncSession) -> AsyncIterator[Finding]:
    """Yield the findings of each check; a check that cannot be made is a finding too."""
    for check in (_server, _settings, _health, _workers, _unserved, _dead, _disk):
        try:
            results = await check(session)
        except SchemaForbidden as error:
            yield Finding(
                "role",
                "warn",
                f"this role may not read everything: {error}",
                f"Grant it {_NEEDED_ROLES}.",
            )
        except DatabaseProblem as error:
            yield Finding("server", "fail", f"{error} ({error.code})", error.hint or None)
        else:
            for finding in results:
                yield finding


async def _server(session: AsyncSession) -> Iterable[Finding]:
    sent, started = datetime.now(UTC), time.monotonic()
    identity = await session.run(checks.identity())
    trip = timedelta(seconds=time.monotonic() - started)
    return [*findings.server_findings(identity), findings.clock_finding(identity, sent, trip)]


async def _settings(session: AsyncSession) -> Iterable[Finding]:
    settings = await session.run(checks.session_settings())
    return findings.setting_findings(settings, pooled=await session.caller.is_pooled())


async def _health(session: AsyncSession) -> Iterable[Finding]:
    rows = await session.run(checks.health())
    workers = await session.run(views.workers(everyone=False))
    alive = any(worker.alive for worker in workers)
    return findings.health_findings(rows, worker_alive=alive)


async def _workers(session: AsyncSession) -> Iterable[Finding]:
    workers = await session.run(views.workers(everyone=False))
    return [findings.worker_finding(workers), findings.store_finding(workers)]


async def _unserved(session: AsyncSession) -> Iterable[Finding]:
    tasks = await session.run(checks.ready_tasks())
    return [findings.unserved_finding(tasks)]


async def _dead(session: AsyncSession) -> Iterable[Finding]:
    letters = await session.run(dead.count_unacknowledged(_DEAD))
    return [findings.dead_letter_finding(letters, _DEAD)]


async def _disk(session: AsyncSession) -> Iterable[Finding]:
    tables = await session.run(checks.table_sizes())
    return [findings.disk_finding(tables)]
