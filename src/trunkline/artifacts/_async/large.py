"""Results that are too large for the database: upload them, and read them back."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from trunkline.artifacts._async.uploads import AsyncUploads
from trunkline.artifacts.async_store import AsyncStore
from trunkline.artifacts.results import KIND, NAME, may_be_large
from trunkline.db.call import Call
from trunkline.db.calls.artifacts import result_limits, stage_elements
from trunkline.errors import FileDamaged, ResultNotStorable, StoreNotConfigured
from trunkline.model import ClaimedJob, UploadedFile

__all__ = ["AsyncLargeResults", "AsyncResultLimits", "read_result"]

T = TypeVar("T")

_REMEMBERED: Final = 30.0
# By how many bytes jsonb is larger than its text, for each element; most for short numbers.
_OVERHEAD: Final = 14
# How many elements of a list the engine takes at once, for a map over it.
_CHUNK: Final = 1000

_elements = msgspec.json.Decoder(list[msgspec.Raw])


class AsyncRunner(Protocol):
    """What runs calls of the engine."""

    async def run(self, call: Call[T]) -> T:
        """Run one call in its own transaction."""


class AsyncResultLimits:
    """The settings that bound results, read at most twice a minute. Attempts share it."""

    def __init__(self) -> None:
        self._limits = (0, 0)
        self._read_at = 0.0

    async def current(self, runner: AsyncRunner) -> tuple[int, int]:
        """Return the largest result that the database takes, and the largest for the store."""
        if time.monotonic() - self._read_at > _REMEMBERED or self._limits == (0, 0):
            self._limits = await runner.run(result_limits())
            self._read_at = time.monotonic()
        return self._limits


class AsyncLargeResults:
    """Uploads large results of one attempt and its steps, and reads such results."""

    def __init__(self, uploads: AsyncUploads, job: ClaimedJob, limits: AsyncResultLimits) -> None:
        self._uploads = uploads
        self._job = job
        self._limits = limits

    async def upload(
        self,
        document: str | None,
        *,
        name: str = NAME,
        step: str | None = None,
        key: str | None = None,
    ) -> UploadedFile | None:
        """Upload a result that is too large for the database; return None for any other.

        Without a store it returns None, and the engine refuses the result.
        """
        if document is None or not may_be_large(document) or not self._uploads.possible:
            return None
        inline, largest = await self._limits.current(self._uploads)
        content = document.encode()
        if len(content) + _OVERHEAD * content.count(b",") <= inline:
            return None
        if len(content) > largest:
            what = self._job.task if step is None else f"step {step}"
            raise ResultNotStorable(
                f"The result of {what} has {len(content)} bytes, more than {largest}",
                hint="Upload it with ctx.artifact and return its name, or raise max_result_bytes.",
            )
        return await self._uploads.add(
            name, content, kind=KIND, content_type="application/json", step=step, key=key
        )

    async def upload_result(self, document: str | None) -> UploadedFile | None:
        """Upload the result of the job, with the elements of a list for maps over it."""
        uploaded = await self.upload(document)
        if uploaded is not None and self._job.workflow_id is not None:
            assert document is not None  # noqa: S101 - it was uploaded
            if document.startswith("["):
                await self._stage(uploaded, _elements.decode(document))
        return uploaded

    async def _stage(self, uploaded: UploadedFile, elements: Sequence[Any]) -> None:
        total = len(elements)
        wanted = await self._stage_some(uploaded, total, 0, ())
        for start in range(0, total if wanted else 0, _CHUNK):
            await self._stage_some(uploaded, total, start, elements[start : start + _CHUNK])

    async def _stage_some(
        self, uploaded: UploadedFile, total: int, start: int, elements: Sequence[Any]
    ) -> bool:
        worker, job = self._uploads.worker, self._job
        document = msgspec.json.encode(elements).decode()
        return await self._uploads.run(
            stage_elements(
                worker, job.job_id, job.attempt, uploaded.id, total, start=start, elements=document
            )
        )

    async def read(self, path: str, sha256: str | None) -> str:
        """Return a result in the store as JSON text."""
        return await read_result(self._uploads.store, path, sha256)


async def read_result(store: AsyncStore | None, path: str, sha256: str | None) -> str:
    """Return a result in the store as JSON text, checked against the recorded hash."""
    if store is None:
        raise StoreNotConfigured(f"The result {path} is in a store, and this worker has none")
    content = bytearray()
    async for chunk in await store.read(path):
        content += chunk
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise FileDamaged(f"{path} is not the file that was published")
    return content.decode()
