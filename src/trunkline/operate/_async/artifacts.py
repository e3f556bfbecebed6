"""Artifacts of all jobs, and the storage that tenants take."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from trunkline.artifacts import AsyncArtifacts, AsyncStore
from trunkline.db.calls import artifacts as calls
from trunkline.errors import InvalidArgument, UnknownArtifact
from trunkline.model import Artifact, Duration, FileRemoval, StorageStatus, seconds
from trunkline.operate._async.session import AsyncSession
from trunkline.operate.job_ids import id_or_prefix

__all__ = ["AsyncStoredFiles"]

# As many ids as fit into an error message.
_CANDIDATES: Final = 5


class AsyncStoredFiles(AsyncArtifacts):
    """All artifacts, quotas and retention; `operator.artifacts`. It uses TRUNKLINE_STORE."""

    def __init__(self, session: AsyncSession, store: AsyncStore) -> None:
        super().__init__(session, store)
        self._session = session

    async def delete(self, artifact: UUID | str | Artifact, *, reason: str | None = None) -> bool:
        """Delete an artifact; return False if it was deleted before. A worker removes the file."""
        found = artifact if isinstance(artifact, Artifact) else await self.get(artifact)
        return await self._session.run(calls.delete_artifact(found.id, reason), reason=reason)

    async def resolve_id(self, artifact: UUID | str) -> UUID:
        """Return the id that begins with a prefix of 8 or more digits; dashes are optional.

        A whole id is returned without a query. If no artifact is found, it raises UnknownArtifact;
        if the prefix fits several artifacts, InvalidArgument with some of their ids.
        """
        start = id_or_prefix(artifact)
        if isinstance(start, UUID):
            return start
        candidates = await self._session.run(calls.resolve_artifact(start, _CANDIDATES))
        match candidates:
            case []:
                raise UnknownArtifact(
                    "unknown artifact",
                    hint="List artifacts with operator.artifacts.list().",
                    detail={"artifact": artifact, "server": self._session.caller.address},
                )
            case [artifact_id]:
                return artifact_id
            case _:
                raise InvalidArgument(
                    "several artifacts have an id that starts like this",
                    hint="Type more digits of the id.",
                    detail={
                        "artifact": artifact,
                        "candidates": ", ".join(map(str, candidates)),
                    },
                )

    async def storage(self) -> list[StorageStatus]:
        """Return what the artifacts of each tenant take, the largest first; at most a thousand."""
        return await self._session.run(calls.storage())

    async def set_quota(
        self, tenant: str | None, max_bytes: int | None, *, reason: str | None = None
    ) -> None:
        """Set how many bytes the artifacts of a tenant may take; None restores the setting."""
        await self._session.run(calls.set_storage_quota(tenant, max_bytes), reason=reason)

    async def set_retention(
        self, kind: str, retention: Duration | None, *, reason: str | None = None
    ) -> None:
        """Set how long new artifacts of a kind are kept; None restores the setting."""
        length = None if retention is None else seconds(retention)
        await self._session.run(calls.set_artifact_retention(kind, length), reason=reason)

    async def removals(self, *, limit: int = 100) -> list[FileRemoval]:
        """Return files that wait to be deleted from the store, and why a try failed."""
        return await self._session.run(calls.file_removals(limit))

    async def installation(self) -> UUID:
        """Return the name of this database in the store."""
        return await self._session.run(calls.storage_installation())
