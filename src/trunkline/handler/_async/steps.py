"""Durable steps of one attempt: steps, sleeps, waits for events, and steps of a workflow."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn, Protocol, TypeVar
from uuid import UUID

from trunkline.artifacts import AsyncLargeResults, AsyncUploads
from trunkline.artifacts.results import reference_to, step_file_name
from trunkline.db.call import Call, json_text
from trunkline.db.calls import steps as calls
from trunkline.errors import (
    EventTimeout,
    InvalidTask,
    StaleAttempt,
    StepChanged,
    StepError,
)
from trunkline.handler.child_jobs import (
    ChildGraph,
    ChildRequest,
    failed_child,
    missing_results,
    started_children,
)
from trunkline.handler.step_book import StepBook, StepId
from trunkline.handler.step_functions import (
    StepCall,
    call_function_async,
    refuse_inside,
    sibling_async,
)
from trunkline.handler.step_values import (
    arguments_hash,
    check_on_change,
    converted,
    result_codec,
    stored,
    typed,
)
from trunkline.model import (
    Cancel,
    ClaimedJob,
    Discard,
    NewStep,
    RecordedStep,
    Retry,
    Snooze,
    Suspended,
    UploadedFile,
    WaitAnswer,
)
from trunkline.model.codec import Codec

__all__ = ["AsyncStepLink", "AsyncSteps"]

T = TypeVar("T")

# The key for files of a step that runs once for a workflow. Keys of handlers never begin with #.
_ONCE: Final = "#once"
_OBJECT: Final = Codec(dict[str, Any])
# A shorter sleep stays in place: to suspend and claim again would take about as long.
_SHORT_SLEEP: Final = 5.0
# How often a wait checks whether the other branches of the handler have finished their steps.
_CHECK: Final = 0.01
# How long the other branches may do something else between two steps before the attempt ends.
_BETWEEN: Final = 1.0
_FIRST_RETRY: Final = 0.5
_LONGEST_RETRY: Final = 30.0
# These end the attempt; to call the function again would change nothing.
_FINAL: Final = (Snooze, Cancel, Retry, Discard, StaleAttempt, StepError, InvalidTask)


class AsyncStepLink(Protocol):
    """The methods of a worker that steps need."""

    @property
    def worker(self) -> str:
        """The id of the worker."""

    @property
    def main_task(self) -> Any:
        """The asyncio task of the handler; None in a thread."""

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""

    async def pause(self, seconds: float) -> None:
        """Sleep; raise Cancel or StaleAttempt if the attempt must stop."""

    @property
    def uploads(self) -> AsyncUploads:
        """Uploads of files to the store."""

    @property
    def large(self) -> AsyncLargeResults:
        """Results that are too large for the database."""

    async def record(self, step: NewStep) -> None:
        """Record a step; raise Cancel or StaleAttempt if the attempt must stop."""


class AsyncSteps:
    """The steps of one attempt."""

    def __init__(self, link: AsyncStepLink, job: ClaimedJob) -> None:
        self._link = link
        self._job = job
        self._book = StepBook()
        # Nothing can be recorded before the first attempt.
        self._loaded = job.attempt == 1
        # Other tasks of the handler that have used steps, and those that wait to suspend it.
        self._siblings: set[Any] = set()
        self._parked: set[Any] = set()

    @property
    def suspended(self) -> bool:
        """Whether a wait has ended the attempt, even if the handler swallowed the exception."""
        return self._book.suspended

    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        key: str | None,
        retries: int,
        on_change: Literal["fail", "reuse"],
    ) -> Any:
        """See Context.step."""
        check_on_change(on_change)
        await self._enter()
        with self._book.calling("step", name, key) as step:
            codec = result_codec(function)
            digest = arguments_hash(args, kwargs)
            recorded = self._book.find(step)
            if recorded is not None:
                if on_change == "fail" and recorded.arguments_hash not in {None, digest}:
                    raise StepChanged(
                        f"Step {name} was recorded with other arguments by an earlier attempt"
                    )
                return typed(name, await self._document(recorded), codec)
            value = await self._called(step, function, args, kwargs, retries)
            document, value = stored(name, value, codec)
            document, file = await self._fitting(document, step)
            place = self._book.next_place()
            await self._link.record(
                NewStep(
                    self._job.job_id,
                    self._job.attempt,
                    place,
                    name,
                    step.key,
                    digest,
                    document,
                )
            )
            self._book.add(step, place, digest, document, file)
            return value

    async def sleep(self, duration: float, key: str | None) -> None:
        """See Context.sleep."""
        if duration < _SHORT_SLEEP:
            await self._link.pause(duration)
            return
        await self._wait("sleep", "sleep", key, None, duration)

    async def wait_for(self, name: str, kind: Any, limit: float | None, key: str | None) -> Any:
        """See Context.wait_for."""
        recorded = await self._wait("event", name, key, key, limit)
        outcome = typed(name, recorded.result, _OBJECT)
        if "timeout" in outcome:
            raise EventTimeout(name)
        return converted(name, outcome["event"], kind)

    async def once(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """See Context.once."""
        await self._enter()
        job = self._job
        codec = result_codec(function)
        step = StepId("once", name, _ONCE)
        with self._book.calling("once", name, name):
            answer = await self._link.run(
                calls.begin_once(
                    self._link.worker, job.job_id, job.attempt, self._book.next_place(), name
                )
            )
            if answer.outcome == "over":
                return typed(name, await self._document(answer), codec)
            if answer.outcome != "run":
                await self._leave(answer)
            value = await self._called(step, function, args, kwargs, 0)
            document, value = stored(name, value, codec)
            document, file = await self._fitting(document, step)
            verdict = await self._link.run(
                calls.record_once(self._link.worker, job.job_id, job.attempt, name, document)
            )
            if verdict == "cancel":
                raise Cancel
            if verdict == "lost":
                if file is not None:
                    await self._link.uploads.abandon([file.id])
                # Another attempt has taken the step over. Its result counts for all jobs.
                return await self._taken_over(name, codec)
            return value

    async def gather(
        self,
        requests: Sequence[ChildRequest[T]],
        key: str | None,
        *,
        detach: bool,
        on_change: Literal["fail", "reuse"],
    ) -> list[T]:
        """See Context.gather_jobs."""
        check_on_change(on_change)
        graph = ChildGraph(requests)
        refuse_inside("other jobs")
        if not graph.steps:
            return []
        await self._enter()
        job = self._job
        with self._book.calling("jobs", "jobs", key) as step:
            recorded = self._book.find(step)
            place = self._book.next_place() if recorded is None else recorded.place
            # Also if it is recorded: the engine compares the requests with the earlier ones.
            answer = await self._link.run(
                calls.begin_jobs(
                    self._link.worker,
                    job.job_id,
                    job.attempt,
                    place,
                    key=step.key,
                    steps=graph.document,
                    detach=detach,
                )
            )
            children = started_children(answer.result)
            if children.changed and on_change == "fail":
                raise StepChanged("An earlier attempt started other jobs than this one asks for")
            if answer.outcome == "failed":
                raise failed_child(answer.result)
            if answer.outcome != "over":
                await self._leave(answer)
            self._book.add(step, place, None, answer.result)
            if children.changed:
                graph.adopt(children.steps)
            await self._read_children(graph, children.workflow)
        return graph.results()

    async def _read_children(self, graph: ChildGraph[Any], workflow: UUID) -> None:
        job = self._job
        for name in graph.steps:
            while first := graph.missing_from(name):
                page = await self._link.run(
                    calls.child_results(
                        self._link.worker,
                        job.job_id,
                        job.attempt,
                        workflow=workflow,
                        step=name,
                        first=first - 1,
                    )
                )
                for row in page:
                    value = row.result
                    if row.path is not None:
                        value = json.loads(await self._link.large.read(row.path, row.sha256))
                    graph.take(name, row.item, value)
                if not page:
                    raise missing_results(name)

    async def _taken_over(self, name: str, codec: Any) -> Any:
        job = self._job
        answer = await self._link.run(
            calls.begin_once(
                self._link.worker, job.job_id, job.attempt, self._book.next_place(), name
            )
        )
        if answer.outcome != "over":
            await self._leave(answer)
        return typed(name, await self._document(answer), codec)

    async def _wait(
        self, kind: str, name: str, key: str | None, address: str | None, limit: float | None
    ) -> RecordedStep:
        refuse_inside(f"{kind} {name}")
        await self._enter()
        with self._book.calling(kind, name, key) as step:
            recorded = self._book.find(step)
            if recorded is not None:
                return recorded
            place = self._book.next_place()
            answer = await self._link.run(
                calls.begin_wait(
                    self._link.worker,
                    self._job.job_id,
                    self._job.attempt,
                    place,
                    kind=kind,
                    name=name,
                    key=step.key,
                    address=address,
                    timeout=limit,
                )
            )
            if answer.outcome not in {"over", "timeout"}:
                await self._leave(answer)
            return self._book.add(step, place, None, answer.result)

    async def _enter(self) -> None:
        """Check that the attempt goes on, and read what earlier attempts have recorded."""
        if self._book.suspended:
            raise Suspended
        task = sibling_async(self._link.main_task)
        if task is not None:
            self._siblings.add(task)
        if not self._loaded:
            recorded = await self._link.run(
                calls.recorded_steps(self._link.worker, self._job.job_id, self._job.attempt)
            )
            self._book.load(recorded)
            self._loaded = True

    async def _called(
        self,
        step: StepId,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        retries: int,
    ) -> Any:
        for failures in range(retries):
            call = StepCall(step.name, step.key)
            try:
                return await call_function_async(call, function, args, kwargs)
            except _FINAL:
                raise
            except Exception:  # noqa: BLE001 - the next call may succeed
                # The step is recorded with the files of the call that returned.
                await self._link.uploads.abandon(call.files)
                pause = min(_FIRST_RETRY * 2**failures, _LONGEST_RETRY)
                await self._link.pause(pause * random.uniform(0.8, 1.2))  # noqa: S311
        call = StepCall(step.name, step.key)
        return await call_function_async(call, function, args, kwargs)

    async def _fitting(
        self, document: str | None, step: StepId
    ) -> tuple[str | None, UploadedFile | None]:
        """Return what is recorded: the result, or a reference to the file that it went to."""
        file = await self._link.large.upload(
            document, name=step_file_name(*step), step=step.name, key=step.key
        )
        return (document, None) if file is None else (json_text(reference_to(file.id)), file)

    async def _document(self, recorded: RecordedStep | WaitAnswer) -> str | None:
        """Return a recorded result as JSON text; a large one is read from the store."""
        if recorded.path is None:
            return recorded.result
        return await self._link.large.read(recorded.path, recorded.sha256)

    async def _leave(self, answer: WaitAnswer) -> NoReturn:
        """End the attempt, after the other branches of the handler have finished their steps.

        Branches that do something else are neither awaited nor cancelled: the handler may await
        them itself, in which case the attempt ends when it does.
        """
        if answer.outcome == "cancel":
            raise Cancel
        task = sibling_async(self._link.main_task)
        self._parked.add(task)
        with self._book.parked():
            idle = 0.0
            while not self._book.suspended and (self._book.in_progress or idle < self._grace()):
                await self._link.pause(_CHECK)
                idle = 0.0 if self._book.in_progress else idle + _CHECK
        self._book.suspended = True
        raise Suspended

    def _grace(self) -> float:
        """How long to wait for branches that do something else between two steps."""
        others = self._siblings - self._parked
        return _BETWEEN if any(not task.done() for task in others) else 0.0
