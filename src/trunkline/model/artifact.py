"""Files of jobs, and what they take."""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

__all__ = [
    "ArchiveContents",
    "Artifact",
    "ArtifactUpload",
    "BegunArtifact",
    "FileRemoval",
    "StorageStatus",
    "SweepTurn",
    "UploadLink",
    "UploadedFile",
]


class Artifact(NamedTuple):
    """A file of a completed job. The fields are those of trunkline.stored_artifact."""

    id: UUID
    job_id: UUID
    workflow_id: UUID | None
    tenant: str | None
    task: str
    attempt: int
    step: str | None
    name: str
    kind: str
    content_type: str
    bytes: int
    sha256: str
    duration: float | None
    storage_path: str
    published_at: datetime
    expires_at: datetime | None = None
    # A deleted artifact stays as a tombstone for a while. Its file is gone.
    deleted_at: datetime | None = None
    delete_reason: str | None = None
    # When a sweep found that the store does not have the file any more.
    missing_at: datetime | None = None


class UploadedFile(NamedTuple):
    """A file that a running attempt has uploaded. It becomes an artifact when the job completes."""

    id: UUID
    name: str
    kind: str
    content_type: str
    bytes: int
    sha256: str
    storage_path: str
    duration: float | None = None


class StorageStatus(NamedTuple):
    """What the artifacts of one tenant take."""

    tenant: str | None
    used_bytes: int
    files: int
    # Bytes that running uploads may use.
    reserved_bytes: int
    # None: any number.
    max_bytes: int | None


class FileRemoval(NamedTuple):
    """A file that waits to be deleted from the store."""

    path: str
    reason: str
    queued_at: datetime
    due_at: datetime
    tries: int
    last_error: str | None


class BegunArtifact(NamedTuple):
    """Where to upload an artifact, and how many bytes are reserved; None without a quota."""

    artifact_id: UUID
    path: str
    reserved_bytes: int | None


class ArtifactUpload(NamedTuple):
    """A begun artifact that is uploaded through a link."""

    path: str
    name: str
    content_type: str
    # None without a quota.
    reserved_bytes: int | None


class UploadLink(NamedTuple):
    """A request that uploads a begun artifact from any program, without signing in."""

    url: str
    method: str
    # The request has to send these, and Content-Length.
    headers: Mapping[str, str]
    # What stage_artifact takes after the upload.
    path: str
    expires_in: int


class ArchiveContents(NamedTuple):
    """What a ZIP archive has and lacks, known before its first byte."""

    # Files that are there, as far as the last sweep of the store knows.
    included: int
    # Files that the store has lost.
    missing: int
    expired: int
    deleted: int
    # Of a workflow: its jobs, and how many of them are completed.
    jobs: int | None = None
    completed_jobs: int | None = None

    @property
    def status(self) -> int:
        """The status of HTTP: 200 complete, 206 a part, 404 nothing, 410 nothing any more."""
        if self.included:
            is_part = self.missing or self.expired or self.deleted
            return 206 if is_part or self.jobs != self.completed_jobs else 200
        return 410 if self.expired or self.deleted else 404


class SweepTurn(NamedTuple):
    """Where the sweep of the store continues, and up to which age a file is left alone."""

    installation: UUID
    file_cursor: str | None
    before: datetime
