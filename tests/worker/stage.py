"""An executor on its own: handlers without a database, and what it reports of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.worker.scene import eventually, held_job, no_services
from trunkline import Trunkline
from trunkline.worker.backends import Services
from trunkline.worker.executor import Executor
from trunkline.worker.report import Report
from trunkline.worker.roster import HeldJob

__all__ = ["Stage", "stage"]


class Stage:
    """The executor under test, with everything it said."""

    def __init__(
        self, app: Trunkline, services: Services, concurrency: int, threads: int | None
    ) -> None:
        self.reports: list[Report] = []
        self.demands = 0
        self.forgotten: list[HeldJob] = []
        services.forget = self.forgotten.append
        self.executor = Executor(
            app.tasks,
            services,
            concurrency=concurrency,
            threads=threads,
            report=self.reports.append,
            on_demand=self._on_demand,
        )

    def _on_demand(self) -> None:
        self.demands += 1

    def submit(self, task: str, *payloads: str, **fields: Any) -> list[HeldJob]:
        """Hand over one job for each payload; one without any."""
        held = [held_job(task, payload, **fields) for payload in payloads or ("{}",)]
        self.executor.submit(held)
        return held

    async def run(self, task: str, payload: str = "{}") -> Report:
        """Run one job and return what was reported of it."""
        (held,) = self.submit(task, payload)
        await eventually(lambda: self.report_of(held), "the job is reported")
        found = self.report_of(held)
        assert found is not None
        return found

    def report_of(self, held: HeldJob) -> Report | None:
        return next((one for one in self.reports if one.job is held.job), None)

    async def until_started(self, *held: HeldJob) -> None:
        await eventually(lambda: all(one.runner is not None for one in held), "the jobs run")

    async def until_reported(self, count: int) -> None:
        await eventually(lambda: len(self.reports) >= count, f"{count} reports")

    async def until_idle(self, runners: int) -> None:
        await eventually(
            lambda: self.executor.busy == 0 and self.executor.demand() >= runners, "all are free"
        )


@asynccontextmanager
async def stage(
    app: Trunkline,
    *,
    concurrency: int = 2,
    threads: int | None = None,
    services: Services | None = None,
) -> AsyncIterator[Stage]:
    """A started executor, closed at the end."""
    made = Stage(app, services or no_services(), concurrency, threads)
    made.executor.start()
    await asyncio.sleep(0)
    try:
        yield made
    finally:
        await made.executor.close()
