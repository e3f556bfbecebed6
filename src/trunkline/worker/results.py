"""Uploads results that are too large for the database."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from trunkline.artifacts import AsyncLargeResults, AsyncUploads
from trunkline.artifacts.results import may_be_large, reference_to
from trunkline.db.call import Call, json_text
from trunkline.worker.backends import Services
from trunkline.worker.report import End, Report

__all__ = ["Results"]

T = TypeVar("T")


class Results:
    """Replaces a large result by a reference to a file in the store, if there is a store."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def worker(self) -> str:
        """The id of the worker."""
        return self._services.worker

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return await self._services.pool.run(call)

    async def fitting(self, report: Report) -> Report:
        """Return the report with a result that the engine accepts.

        Without a store, the engine refuses a large result, and the job becomes a dead letter.
        """
        if not may_be_large(report.result):
            return report
        services = self._services
        if services.store is None or report.end is not End.COMPLETE:
            return report
        uploads = AsyncUploads(self, report.job, services.store)
        large = AsyncLargeResults(uploads, report.job, services.limits)
        uploaded = await large.upload_result(report.result)
        if uploaded is None:
            return report
        return replace(report, result=json_text(reference_to(uploaded.id)))
