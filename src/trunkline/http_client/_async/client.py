"""The client: jobs, workflows, artifacts and events over HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self, TypeVar
from uuid import UUID

import httpx2
import msgspec

from trunkline.errors import JobCancelled, JobFailed, WaitTimeout
from trunkline.http_client.answers import decoded, refusal_of, unreachable
from trunkline.http_client.values import (
    AcceptedJob,
    AcceptedJobs,
    AcceptedWorkflow,
    ArtifactPage,
    ChangedItem,
    JobPage,
    Link,
    SentEvent,
    StoredArtifact,
    WorkflowSummary,
)
from trunkline.model import Job, JobState

__all__ = ["AsyncApiClient"]

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 2.0
_SLOWER: Final = 1.5
_NOT_MODIFIED: Final = 304


class AsyncApiClient:
    """Calls the API at a URL with a service key or a token.

    `client` is a client of httpx2 that is used instead of an own one, for example with a proxy. The
    caller closes it.
    """

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 30.0,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"}
        self._client = client or httpx2.AsyncClient(timeout=timeout, follow_redirects=False)
        self._is_own = client is None
        self.jobs = AsyncApiJobs(self)
        self.workflows = AsyncApiWorkflows(self)
        self.artifacts = AsyncApiArtifacts(self)

    async def send_event(
        self,
        name: str,
        payload: Any = None,
        *,
        job: UUID | str | None = None,
        key: str | None = None,
        event_id: str | None = None,
    ) -> SentEvent:
        """Send an event to a job that waits for it, or to a key."""
        body = {"name": name, "payload": payload, "job": job, "key": key, "event_id": event_id}
        return await self.ask("POST", "/v1/events", SentEvent, body=_given(body))

    async def ask(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> T:
        """Send any request of the API and decode the answer as a type."""
        response = await self.send(method, path, body=body, query=query, headers=headers)
        return decoded(response, kind)

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        """Send any request of the API and return the response, whatever its status."""
        sent = {**self._headers, **(headers or {})}
        content = None
        if body is not None:
            content = msgspec.json.encode(body)
            sent["Content-Type"] = "application/json"
        try:
            return await self._client.request(
                method, self._url + path, content=content, params=query, headers=sent
            )
        except httpx2.TransportError as error:
            raise unreachable(error) from error

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
        """Close the connections."""
        if self._is_own:
            await self._client.aclose()


class AsyncApiJobs:
    """Jobs; `api.jobs`."""

    def __init__(self, api: AsyncApiClient) -> None:
        self._api = api

    async def create(
        self,
        task: str,
        payload: Mapping[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        **options: Any,
    ) -> AcceptedJob:
        """Create a job. The options are the fields of NewJob in the OpenAPI document.

        With an idempotency key it is safe to repeat the call after ApiUnreachable.
        """
        headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
        body = {"task": task, "payload": payload or {}, **_given(options)}
        return await self._api.ask("POST", "/v1/jobs", AcceptedJob, body=body, headers=headers)

    async def create_many(self, jobs: Sequence[Mapping[str, Any]]) -> list[AcceptedJob]:
        """Create up to 1,000 jobs, all or none; each is a dictionary with the fields of NewJob."""
        body = {"jobs": list(jobs)}
        return (await self._api.ask("POST", "/v1/jobs/many", AcceptedJobs, body=body)).jobs

    async def get(self, job: UUID | str) -> Job:
        """Return one job with its payload, its result and the errors of its attempts."""
        return await self._api.ask("GET", f"/v1/jobs/{job}", Job)

    async def list(
        self,
        *,
        state: JobState | str | Sequence[JobState | str] | None = None,
        limit: int = 100,
        cursor: str | None = None,
        **fields: Any,
    ) -> JobPage:
        """Return a page of jobs that match, newest first; `fields` are those of a filter."""
        states = [state] if isinstance(state, str) else state
        query = {
            "state": None if states is None else [str(name) for name in states],
            "limit": limit,
            "cursor": cursor,
            **{name: _as_text(value) for name, value in fields.items()},
        }
        return await self._api.ask("GET", "/v1/jobs", JobPage, query=_given(query))

    async def list_all(self, **fields: Any) -> AsyncIterator[Job]:
        """Yield every job that matches, page by page."""
        cursor = None
        while True:
            page = await self.list(cursor=cursor, **fields)
            for job in page.jobs:
                yield job
            cursor = page.next
            if cursor is None:
                return

    async def cancel(self, job: UUID | str, *, reason: str | None = None) -> ChangedItem:
        """Cancel a waiting job at once, or ask the worker of a running one to stop."""
        body = _given({"reason": reason})
        return await self._api.ask("POST", f"/v1/jobs/{job}/cancel", ChangedItem, body=body)

    async def retry(self, job: UUID | str, *, reason: str | None = None) -> AcceptedJob:
        """Run a dead letter again under its id, or a finished job as a new one."""
        body = _given({"reason": reason})
        return await self._api.ask("POST", f"/v1/jobs/{job}/retry", AcceptedJob, body=body)

    async def wait(self, job: UUID | str, timeout: float | None = None) -> Any:
        """Wait until a job has ended; return its result or raise JobFailed or JobCancelled."""
        end = None if timeout is None else time.monotonic() + timeout
        pause, tag = _FIRST_PAUSE, ""
        while True:
            response = await self._api.send(
                "GET", f"/v1/jobs/{job}", headers={"If-None-Match": tag} if tag else {}
            )
            if response.status_code != _NOT_MODIFIED:
                tag = response.headers.get("etag", "")
                found = decoded(response, Job)
                if found.state.final:
                    return _result(found)
            if end is not None and time.monotonic() + pause > end:
                raise WaitTimeout(UUID(str(job)), timeout or 0.0, server="")
            await asyncio.sleep(pause)
            pause = min(pause * _SLOWER, _LONGEST_PAUSE)


class AsyncApiWorkflows:
    """Workflows and batches; `api.workflows`."""

    def __init__(self, api: AsyncApiClient) -> None:
        self._api = api

    async def start(
        self, name: str, steps: Sequence[Mapping[str, Any]], **options: Any
    ) -> AcceptedWorkflow:
        """Start a workflow; steps and options are those of NewWorkflow."""
        body = {"name": name, "steps": list(steps), **_given(options)}
        return await self._api.ask("POST", "/v1/workflows", AcceptedWorkflow, body=body)

    async def start_batch(
        self, name: str, jobs: Sequence[Mapping[str, Any]], **options: Any
    ) -> AcceptedWorkflow:
        """Start a batch: jobs without dependencies."""
        body = {"name": name, "jobs": list(jobs), **_given(options)}
        return await self._api.ask("POST", "/v1/batches", AcceptedWorkflow, body=body)

    async def get(self, workflow: UUID | str) -> WorkflowSummary:
        """Return one workflow with its steps and its progress."""
        return await self._api.ask("GET", f"/v1/workflows/{workflow}", WorkflowSummary)

    async def cancel(self, workflow: UUID | str, *, reason: str | None = None) -> ChangedItem:
        """Cancel the jobs that have not started and ask the running ones to stop."""
        path = f"/v1/workflows/{workflow}/cancel"
        return await self._api.ask("POST", path, ChangedItem, body=_given({"reason": reason}))


class AsyncApiArtifacts:
    """Files of completed jobs; `api.artifacts`."""

    def __init__(self, api: AsyncApiClient) -> None:
        self._api = api

    async def list(
        self, *, job: UUID | str | None = None, workflow: UUID | str | None = None
    ) -> list[StoredArtifact]:
        """Return the first thousand artifacts of a job or workflow, oldest first."""
        query = _given({"job": job, "workflow": workflow, "limit": 1000})
        return (await self._api.ask("GET", "/v1/artifacts", ArtifactPage, query=query)).artifacts

    async def link(self, artifact: UUID | str, *, expires_in: int = 3600) -> Link:
        """Return a link to the content that works without signing in."""
        path = f"/v1/artifacts/{artifact}/link"
        return await self._api.ask("POST", path, Link, body={"expires_in": expires_in})

    async def delete(self, artifact: UUID | str) -> None:
        """Delete an artifact."""
        response = await self._api.send("DELETE", f"/v1/artifacts/{artifact}")
        if response.is_error:
            raise refusal_of(response)


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _as_text(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    return [str(part) for part in value] if isinstance(value, (list, tuple)) else value


def _result(job: Job) -> Any:
    if job.state is JobState.CANCELLED:
        raise JobCancelled(job.id, job.reason)
    if job.state is JobState.DEAD:
        raise JobFailed(job.id, job.reason, error=job.last_error, errors=job.errors)
    return job.result
