"""Artifacts of completed jobs, for clients and operators."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import UUID

from trunkline.artifacts._async.archive import AsyncArchive
from trunkline.artifacts._async.large import read_result
from trunkline.artifacts.archive_contents import contents_of, entries_of, without_replaced
from trunkline.artifacts.async_store import AsyncStore
from trunkline.artifacts.names import content_disposition
from trunkline.artifacts.results import reference_of
from trunkline.artifacts.zipping import zip_chunks
from trunkline.db.call import Call
from trunkline.db.calls import artifacts as calls
from trunkline.db.calls import workflows
from trunkline.errors import ArtifactGone, FileDamaged, InvalidArgument, StoreError, UnknownArtifact
from trunkline.model import Artifact, StepResult, UploadLink

__all__ = ["AsyncArtifacts", "AsyncReader"]

T = TypeVar("T")

_PAGE: Final = 1000
# A bucket looks at the time when the upload begins, so large files need no longer link.
_UPLOAD: Final = 900
_LONGEST_UPLOAD: Final = 3600


class AsyncReader(Protocol):
    """What runs calls of the engine."""

    async def run(self, call: Call[T]) -> T:
        """Run one call in its own transaction."""


class AsyncArtifacts:
    """Files of completed jobs: list, open, link, delete, ZIP; `app.artifacts`."""

    def __init__(self, reader: AsyncReader, store: AsyncStore) -> None:
        self._reader = reader
        self._store = store

    async def list(
        self,
        *,
        job: UUID | str | None = None,
        workflow: UUID | str | None = None,
        kind: str | None = None,
        name: str | None = None,
        deleted: bool = False,
        limit: int = 100,
        after: UUID | str | None = None,
    ) -> list[Artifact]:
        """Return artifacts, oldest first. `after` is the last id of the page before."""
        return await self._reader.run(
            calls.list_artifacts(
                job=_uuid(job),
                workflow=_uuid(workflow),
                kind=kind,
                name=name,
                deleted=deleted,
                limit=limit,
                after=_uuid(after),
            )
        )

    async def get(self, artifact: UUID | str | Artifact) -> Artifact:
        """Return one artifact; a deleted one has `deleted_at`."""
        return await self._reader.run(calls.artifact(_id(artifact)))

    async def open(
        self, artifact: UUID | str | Artifact, *, start: int = 0, stop: int | None = None
    ) -> AsyncIterator[bytes]:
        """Return the content in chunks, from byte `start` up to `stop`. Close it to end early."""
        found = await self._existing(artifact)
        return await self._store.read(found.storage_path, start, stop)

    async def read(self, artifact: UUID | str | Artifact) -> bytes:
        """Return the whole content, checked against the recorded hash. Mind the memory."""
        found = await self._existing(artifact)
        content = bytearray()
        async for chunk in await self._store.read(found.storage_path):
            content += chunk
        if hashlib.sha256(content).hexdigest() != found.sha256:
            raise FileDamaged(f"{found.storage_path} is not the file that was published")
        return bytes(content)

    async def save(self, artifact: UUID | str | Artifact, path: str | Path) -> Path:
        """Write the content to a local file, which appears when it is complete."""
        found = await self._existing(artifact)
        target = Path(path)
        draft = target.with_name(f".{target.name}.{found.id.hex[-8:]}")
        digest = hashlib.sha256()
        try:
            with draft.open("wb") as file:
                async for chunk in await self._store.read(found.storage_path):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != found.sha256:
                raise FileDamaged(f"{found.storage_path} is not the file that was published")
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return target

    async def link(self, artifact: UUID | str | Artifact, *, expires_in: int = 3600) -> str:
        """Return a link that works without signing in, for an hour unless you say otherwise.

        It is made now and stored nowhere.
        """
        found = await self._existing(artifact)
        return await self._store.sign(
            found.storage_path,
            expires_in=expires_in,
            content_type=found.content_type,
            filename=found.name,
        )

    async def upload_link(
        self,
        artifact: UUID | str,
        *,
        worker: str,
        job: UUID | str,
        attempt: int,
        expires_in: int = _UPLOAD,
    ) -> UploadLink:
        """Return a request with which any program uploads an artifact that an attempt has begun.

        Worker, job and attempt are those of begin_artifact; a stale attempt is refused. Record the
        upload with stage_artifact. Under a quota, the link to a folder takes what is reserved.
        """
        store = self._store.store
        if not store.capabilities.signed_uploads:
            raise StoreError(
                "The store takes no uploads through links",
                hint="Upload in a handler, or remove signed_uploads=no from the store's address.",
            )
        if not 1 <= expires_in <= _LONGEST_UPLOAD:
            raise InvalidArgument(
                "an upload link lives for an hour at most", detail={"expires_in": expires_in}
            )
        found = await self._reader.run(
            calls.artifact_upload(worker, _parsed(job), attempt, _parsed(artifact))
        )
        url = await self._store.sign(
            found.path, method="PUT", expires_in=expires_in, max_bytes=found.reserved_bytes
        )
        headers = {
            "Content-Type": found.content_type,
            "Content-Disposition": content_disposition(found.name, found.content_type),
        }
        return UploadLink(url, "PUT", headers, found.path, expires_in)

    async def delete(self, artifact: UUID | str | Artifact, *, reason: str | None = None) -> bool:
        """Delete an artifact; return False if it was deleted before. A worker removes the file."""
        return await self._reader.run(calls.delete_artifact(_id(artifact), reason))

    async def zip(
        self,
        artifacts: Iterable[Artifact] | None = None,
        *,
        job: UUID | str | None = None,
        workflow: UUID | str | None = None,
    ) -> AsyncArchive:
        """Return a ZIP archive in chunks, of these artifacts or all of a job or workflow.

        Memory does not grow with the archive. Its `contents` count what it has and lacks. Files
        that expired, were deleted or are lost are listed in its MISSING.txt. Close it when the
        reader leaves.
        """
        status = None
        if artifacts is not None:
            found: Sequence[Artifact] = list(artifacts)
        else:
            found = await self._all(job, workflow)
            if workflow is not None:
                status = await self._reader.run(workflows.workflow(_parsed(workflow)))
        chosen = without_replaced(found)
        chunks = self._store.iterate(zip_chunks(self._store.store, entries_of(chosen)))
        return AsyncArchive(contents_of(chosen, status), chunks)

    async def resolve(self, value: Any, job: UUID) -> Any:
        """Return a result of a job; a large one is read from the store."""
        reference = reference_of(value)
        if reference is None:
            return value
        try:
            found = await self.get(reference)
        except UnknownArtifact:
            return value
        if found.job_id != job or found.kind != "result":
            # The handler returned something that only looks like a reference.
            return value
        return json.loads(await self.read(found))

    async def resolve_page(self, page: Sequence[StepResult]) -> Sequence[tuple[int, Any]]:
        """Return results of a step of a workflow; large ones are read from the store."""
        return [
            (
                row.item,
                row.result
                if row.path is None
                else json.loads(await read_result(self._store, row.path, row.sha256)),
            )
            for row in page
        ]

    async def _all(self, job: UUID | str | None, workflow: UUID | str | None) -> Sequence[Artifact]:
        if (job is None) == (workflow is None):
            raise InvalidArgument("zip takes a list of artifacts, a job or a workflow")
        found: Sequence[Artifact] = ()
        while len(found) % _PAGE == 0:
            after = found[-1].id if found else None
            page = await self.list(
                job=job, workflow=workflow, deleted=True, limit=_PAGE, after=after
            )
            if not page:
                break
            found = [*found, *page]
        return found

    async def _existing(self, artifact: UUID | str | Artifact) -> Artifact:
        found = artifact if isinstance(artifact, Artifact) else await self.get(artifact)
        if found.deleted_at is not None:
            raise ArtifactGone(
                "artifact was deleted",
                hint="Run the job again if you still need the file.",
                detail={
                    "artifact": str(found.id),
                    "deleted_at": str(found.deleted_at),
                    "reason": found.delete_reason,
                },
            )
        return found


def _id(artifact: UUID | str | Artifact) -> UUID:
    return artifact.id if isinstance(artifact, Artifact) else _parsed(artifact)


def _uuid(value: UUID | str | None) -> UUID | None:
    return None if value is None else _parsed(value)


def _parsed(value: UUID | str) -> UUID:
    if isinstance(value, UUID):
        return value
    try:
        return UUID(value)
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidArgument("an id is not a UUID", detail={"id": repr(value)}) from error
