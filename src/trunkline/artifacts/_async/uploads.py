"""Uploads of one attempt."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from trunkline.artifacts.async_store import AsyncStore
from trunkline.artifacts.content import AsyncContent
from trunkline.artifacts.names import check_name, content_type_of
from trunkline.artifacts.store import Written
from trunkline.db.call import Call
from trunkline.db.calls import artifacts as calls
from trunkline.errors import (
    StaleAttempt,
    StorageQuotaExceeded,
    StoreError,
    StoreNotConfigured,
    TrunklineError,
)
from trunkline.model import BegunArtifact, ClaimedJob, UploadedFile

__all__ = ["AsyncCalls", "AsyncUploads"]

T = TypeVar("T")

# A reservation is doubled while the content passes, but by no more than this at once.
_LARGEST_STEP: Final = 64 << 20
_FIRST_RESERVATION: Final = 1 << 20


class AsyncCalls(Protocol):
    """What runs calls of the engine."""

    @property
    def worker(self) -> str:
        """The id of the worker."""

    async def run(self, call: Call[T]) -> T:
        """Run one call in its own transaction."""


class AsyncUploads:
    """Uploads files of a running attempt, each to its own path."""

    def __init__(self, backend: AsyncCalls, job: ClaimedJob, store: AsyncStore | None) -> None:
        self._backend = backend
        self._job = job
        self.store = store

    @property
    def worker(self) -> str:
        """The id of the worker."""
        return self._backend.worker

    @property
    def possible(self) -> bool:
        """Whether there is a store."""
        return self.store is not None

    async def run(self, call: Call[T]) -> T:
        """Call the engine."""
        return await self._backend.run(call)

    async def add(
        self,
        name: str,
        content: AsyncContent,
        *,
        kind: str | None = None,
        duration: float | None = None,
        content_type: str | None = None,
        step: str | None = None,
        key: str | None = None,
    ) -> UploadedFile:
        """Upload a file; see Context.artifact. `step` and `key` name the step that does it."""
        check_name(name)
        if self.store is None:
            raise StoreNotConfigured(f"{self._job.task} uploads {name}, and there is no store")
        media_type = content_type or content_type_of(name)
        begun = await self._run(
            calls.begin_artifact,
            name,
            kind=kind,
            content_type=media_type,
            size=_size_of(content),
            step=step,
            step_key=key,
        )
        try:
            written = await self.store.put(
                begun.path,
                content,
                content_type=media_type,
                filename=name,
                on_bytes=self._reserving(begun),
            )
        except Exception:
            # The reservation must not stay until the attempt ends: the handler may try again.
            with suppress(TrunklineError):
                await self._run(calls.abandon_artifact, begun.artifact_id)
            raise
        await self._stage(begun, written, duration)
        return UploadedFile(
            begun.artifact_id,
            name,
            kind or name.rpartition(".")[2].lower(),
            media_type,
            written.bytes,
            written.sha256,
            begun.path,
            duration,
        )

    async def abandon(self, files: Iterable[UUID]) -> None:
        """Remove files that nobody will publish. A sweep would remove them too, only later."""
        for file in files:
            with suppress(TrunklineError):
                await self._run(calls.abandon_artifact, file)

    async def _stage(self, begun: BegunArtifact, written: Written, duration: float | None) -> None:
        assert self.store is not None  # noqa: S101 - see add
        try:
            await self._run(
                calls.stage_artifact,
                begun.path,
                size=written.bytes,
                sha256=written.sha256,
                duration=duration,
            )
        except (StaleAttempt, StorageQuotaExceeded):
            # Nobody will publish the file. A sweep would remove it too, only later.
            with suppress(StoreError):
                await self.store.delete([begun.path])
            raise

    def _reserving(self, begun: BegunArtifact) -> Any:
        """Return what reserves more bytes while the content passes; None without a quota."""
        if begun.reserved_bytes is None:
            return None
        reserved = begun.reserved_bytes

        async def reserve(total: int) -> None:
            nonlocal reserved
            if total <= reserved:
                return
            wanted = max(total, reserved + min(reserved, _LARGEST_STEP), _FIRST_RESERVATION)
            try:
                await self._run(calls.reserve_storage, begun.artifact_id, wanted)
            except StorageQuotaExceeded:
                if wanted == total:
                    raise
                # The quota may still have room for what is there.
                await self._run(calls.reserve_storage, begun.artifact_id, total)
                wanted = total
            reserved = wanted

        return reserve

    async def _run(self, make: Any, *arguments: Any, **named: Any) -> Any:
        job = self._job
        call = make(self._backend.worker, job.job_id, job.attempt, *arguments, **named)
        return await self._backend.run(call)


def _size_of(content: object) -> int | None:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return memoryview(content).nbytes
    if isinstance(content, os.PathLike):
        with suppress(OSError):
            return Path(content).stat().st_size
    return None
