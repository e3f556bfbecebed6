"""Replaces references in the payload of a job by the results of the steps that it depends on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from trunkline.artifacts import AsyncStore, SyncStore, read_result, read_result_async
from trunkline.client.signature import Schema
from trunkline.db.call import Call
from trunkline.db.calls import work
from trunkline.errors import PayloadMismatch
from trunkline.handler.results import PAGE, LoopResults, Results, ThreadResults
from trunkline.model import ClaimedJob, StepResult
from trunkline.model.codec import misplaced_field
from trunkline.worker.frames import Inputs, StepResults

__all__ = ["Dependencies", "has_references"]

_Fields: Final = dict[str, msgspec.Raw]
# A page ends early if its results in the store have more bytes than this together.
_PAGE_BYTES: Final = 32 << 20
# Runs a call and waits for its answer.
_Run = Callable[[Call[Any]], Any]
_AsyncRun = Callable[[Call[Any]], Awaitable[Any]]


def has_references(job: ClaimedJob) -> bool:
    """Whether the payload may refer to results. The payload of a plain job never does."""
    return job.workflow_id is not None and '"$' in job.payload


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The results that one attempt of a job may read."""

    worker: str
    job: ClaimedJob
    schema: Schema

    async def resolve(self, run: _AsyncRun, store: AsyncStore | None) -> Inputs:
        """Read what the payload refers to: values in full, results of many jobs up to one page."""
        fields = msgspec.json.decode(self.job.payload, type=_Fields)
        sets: dict[str, StepResults] = {}
        results: dict[str, str] = {}
        totals: Mapping[str, int] | None = None
        for name, raw in fields.items():
            document = bytes(raw)
            # The server stores shorter keys first, so "item" comes before "$result".
            if not document.startswith(b"{") or b'"$' not in document:
                continue
            reference = msgspec.json.decode(document, type=_Fields)
            if reference.keys() == {"$value"}:
                fields[name] = reference["$value"]
            elif "$result" in reference and reference.keys() <= {"$result", "item"}:
                item = msgspec.json.decode(reference["item"]) if "item" in reference else 0
                step = msgspec.json.decode(reference["$result"], type=str)
                results[name] = step
                fields[name] = await self._one(run, name, step, item, store)
            elif reference.keys() == {"$results"}:
                if totals is None:
                    totals = (await run(work.job_workflow(self.worker, self.job))).sets
                step = msgspec.json.decode(reference["$results"], type=str)
                results[name] = step
                if name in self.schema.items:
                    first = await self._texts(await run(self._page(step, 0)), store)
                    sets[name] = StepResults(step, totals[step], first)
                    fields[name] = msgspec.Raw(b"[]")
                else:
                    fields[name] = await self._all(run, step, totals[step], store)
        return Inputs(msgspec.json.encode(fields).decode(), sets, results)

    async def _one(
        self, run: _AsyncRun, name: str, step: str, item: int, store: AsyncStore | None
    ) -> msgspec.Raw:
        if not (page := await run(self._page(step, item, 1))):
            raise PayloadMismatch(
                f"Argument {name} of {self.schema.task} refers to item {item} of step {step}, "
                "which has no such item"
            )
        [result] = await self._texts(page, store)
        return msgspec.Raw(result.encode())

    async def _all(
        self, run: _AsyncRun, step: str, total: int, store: AsyncStore | None
    ) -> msgspec.Raw:
        results: list[str] = []
        while len(results) < total and (page := await run(self._page(step, len(results)))):
            results += await self._texts(page, store)
        return msgspec.Raw(f"[{','.join(results)}]".encode())

    @staticmethod
    async def _texts(page: Sequence[StepResult], store: AsyncStore | None) -> list[str]:
        """Return the results of a page as JSON texts; large ones are read from the store."""
        return [
            row.result if row.path is None else await read_result_async(store, row.path, row.sha256)
            for row in _within_memory(page)
        ]

    def loop_arguments(
        self, run: _AsyncRun, inputs: Inputs, store: AsyncStore | None
    ) -> dict[str, Any]:
        """Return the arguments of an `async def` handler, which awaits further pages."""

        def results(name: str, source: StepResults) -> Results[Any]:
            async def read(start: int) -> Sequence[Any]:
                page = await self._texts(await run(self._page(source.step, start)), store)
                return self._decoded(name, source.step, start, page)

            first = self._decoded(name, source.step, 0, source.first)
            return LoopResults(source.total, first, read)

        return self._arguments(inputs, results)

    def thread_arguments(
        self, run: _Run, inputs: Inputs, store: SyncStore | None
    ) -> dict[str, Any]:
        """Return the arguments of a `def` handler."""

        def results(name: str, source: StepResults) -> Results[Any]:
            def read(start: int) -> Sequence[Any]:
                page = [
                    row.result if row.path is None else read_result(store, row.path, row.sha256)
                    for row in _within_memory(run(self._page(source.step, start)))
                ]
                return self._decoded(name, source.step, start, page)

            first = self._decoded(name, source.step, 0, source.first)
            return ThreadResults(source.total, first, read)

        return self._arguments(inputs, results)

    def _arguments(
        self, inputs: Inputs, results: Callable[[str, StepResults], Results[Any]]
    ) -> dict[str, Any]:
        try:
            arguments = self.schema.decode(inputs.payload)
        except PayloadMismatch as error:
            wrong = self.schema.misfits(inputs.payload) if error.field is None else []
            if wrong and inputs.results.keys() >= set(wrong):
                error.result = f"the result of step {inputs.results[wrong[0]]}"
            raise
        return arguments | {name: results(name, source) for name, source in inputs.sets.items()}

    def _page(self, step: str, start: int, limit: int = PAGE) -> Call[list[StepResult]]:
        return work.dependency_results(self.worker, self.job, step, start, limit)

    def _decoded(self, name: str, step: str, start: int, page: Sequence[str]) -> Sequence[Any]:
        codec = self.schema.items[name]
        values = []
        for place, document in enumerate(page, start):
            try:
                values.append(codec.decode(document))
            except (msgspec.MsgspecError, ValueError) as error:
                mismatch = PayloadMismatch(
                    f"Result {place} of step {step} does not fit argument {name} of "
                    f"{self.schema.task}: {error}"
                )
                mismatch.field = misplaced_field(error)
                mismatch.result = f"the result of step {step}"
                raise mismatch from error
        return values


def _within_memory(page: Sequence[StepResult]) -> Iterator[StepResult]:
    """Return the beginning of a page: at least one result, and no more than fit into memory."""
    total = 0
    for number, row in enumerate(page):
        total += row.bytes or 0
        if number and total > _PAGE_BYTES:
            return
        yield row
