"""Which artifacts an archive has, and which of them are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from trunkline.artifacts.results import KIND
from trunkline.artifacts.zipping import ZipEntry
from trunkline.model import ArchiveContents, Artifact, WorkflowStatus

__all__ = ["contents_of", "entries_of", "without_replaced"]

# The reason that the duty sweep_artifacts records.
_EXPIRED: Final = "expired"


def contents_of(artifacts: Iterable[Artifact], workflow: WorkflowStatus | None) -> ArchiveContents:
    """Count what an archive of these artifacts has."""
    counts = dict.fromkeys(("included", "missing", "expired", "deleted"), 0)
    for artifact in artifacts:
        counts[_fate(artifact)] += 1
    if workflow is None:
        return ArchiveContents(**counts)
    return ArchiveContents(**counts, jobs=workflow.jobs, completed_jobs=workflow.completed)


def entries_of(artifacts: Iterable[Artifact]) -> list[ZipEntry]:
    """Return the entries of an archive; those of deleted artifacts are known to be gone."""
    return [
        ZipEntry(
            found.name,
            found.storage_path,
            found.bytes,
            found.content_type,
            found.published_at,
            found.sha256,
            gone=None
            if found.deleted_at is None
            else f"{_fate(found)} at {found.deleted_at:%Y-%m-%d %H:%M} UTC",
        )
        for found in artifacts
    ]


def without_replaced(artifacts: Sequence[Artifact]) -> list[Artifact]:
    """Leave out large results, and deleted artifacts of which there is a newer one."""
    newest: dict[tuple[object, ...], Artifact] = {}
    for artifact in artifacts:
        key = (artifact.job_id, artifact.kind, artifact.name)
        other = newest.get(key)
        if other is None or _rank(artifact) > _rank(other):
            newest[key] = artifact
    kept = {artifact.id for artifact in newest.values()}
    return [
        artifact
        for artifact in artifacts
        if artifact.kind != KIND and (artifact.deleted_at is None or artifact.id in kept)
    ]


def _rank(artifact: Artifact) -> tuple[bool, object]:
    return artifact.deleted_at is None, artifact.id


def _fate(artifact: Artifact) -> str:
    if artifact.deleted_at is not None:
        return "expired" if artifact.delete_reason == _EXPIRED else "deleted"
    # A sweep did not find the file. It may be back, so the archive looks for it.
    return "included" if artifact.missing_at is None else "missing"
