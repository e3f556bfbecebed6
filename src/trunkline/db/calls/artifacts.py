"""Calls about artifacts: of workers that upload and sweep, and of clients that read."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, LiteralString
from uuid import UUID

from trunkline.db.call import Call, nothing, one, plain_text, rows_of, scalar
from trunkline.model import (
    Artifact,
    ArtifactUpload,
    BegunArtifact,
    FileRemoval,
    StorageStatus,
    SweepTurn,
)

__all__ = [
    "abandon_artifact",
    "artifact",
    "artifact_upload",
    "artifacts_to_check",
    "begin_artifact",
    "delete_artifact",
    "file_removals",
    "list_artifacts",
    "report_checked",
    "report_files",
    "report_removals",
    "reserve_storage",
    "result_limits",
    "set_artifact_retention",
    "set_storage_quota",
    "stage_artifact",
    "stage_elements",
    "storage",
    "storage_installation",
    "take_removals",
    "take_sweep",
]

_SELECT: Final[LiteralString] = (
    "select artifact_id, job_id, workflow_id, tenant, task, attempt, step, name, kind,"
    " content_type, bytes, sha256, duration, storage_path, published_at, expires_at,"
    " deleted_at, delete_reason, missing_at"
)


def begin_artifact(
    worker: str,
    job: UUID,
    attempt: int,
    name: str,
    *,
    kind: str | None,
    content_type: str,
    size: int | None,
    step: str | None,
    step_key: str | None = None,
) -> Call[BegunArtifact]:
    """Reserve name, path and bytes of a file before it is uploaded."""
    return Call(
        "select artifact_id, path, reserved_bytes from trunkline.begin_artifact(p_worker => %s,"
        " p_job => %s::uuid, p_attempt => %s::integer, p_name => %s, p_kind => %s,"
        " p_content_type => %s, p_bytes => %s::bigint, p_step => %s, p_step_key => %s)",
        (worker, job, attempt, name, kind, content_type, size, step, step_key),
        one(BegunArtifact),
    )


def reserve_storage(
    worker: str, job: UUID, attempt: int, artifact_id: UUID, size: int
) -> Call[int | None]:
    """Reserve more bytes for an upload."""
    return Call(
        "select trunkline.reserve_storage(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer, p_artifact => %s::uuid, p_bytes => %s::bigint)",
        (worker, job, attempt, artifact_id, size),
        scalar,
    )


def stage_artifact(
    worker: str,
    job: UUID,
    attempt: int,
    path: str,
    *,
    size: int,
    sha256: str,
    duration: float | None,
) -> Call[UUID]:
    """Record that a file was uploaded."""
    return Call(
        "select trunkline.stage_artifact(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer, p_path => %s, p_bytes => %s::bigint, p_sha256 => %s,"
        " p_duration => %s::double precision)",
        (worker, job, attempt, path, size, sha256, duration),
        scalar,
    )


def artifact_upload(
    worker: str, job: UUID, attempt: int, artifact_id: UUID
) -> Call[ArtifactUpload]:
    """Return where a begun artifact is uploaded, for a link."""
    return Call(
        "select path, name, content_type, reserved_bytes from trunkline.artifact_upload("
        "p_worker => %s, p_job => %s::uuid, p_attempt => %s::integer, p_artifact => %s::uuid)",
        (worker, job, attempt, artifact_id),
        one(ArtifactUpload),
    )


def stage_elements(
    worker: str,
    job: UUID,
    attempt: int,
    artifact_id: UUID,
    total: int,
    *,
    start: int,
    elements: str,
) -> Call[bool]:
    """Store elements of a list for maps over it; return whether more are wanted."""
    return Call(
        "select trunkline.stage_elements(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer, p_artifact => %s::uuid, p_total => %s::integer,"
        " p_from => %s::integer, p_elements => %s::text::jsonb)",
        (worker, job, attempt, artifact_id, total, start, elements),
        scalar,
    )


def abandon_artifact(worker: str, job: UUID, attempt: int, artifact_id: UUID) -> Call[bool]:
    """Give up an upload, and its reservation."""
    return Call(
        "select trunkline.abandon_artifact(p_worker => %s, p_job => %s::uuid,"
        " p_attempt => %s::integer, p_artifact => %s::uuid)",
        (worker, job, attempt, artifact_id),
        scalar,
    )


def artifact(artifact_id: UUID) -> Call[Artifact]:
    """Return one artifact, deleted or not."""
    return Call(
        _SELECT + " from trunkline.artifact(p_artifact => %s::uuid)",
        (artifact_id,),
        one(Artifact),
    )


def resolve_artifact(prefix: str, limit: int) -> Call[list[UUID]]:
    """Return artifacts whose ids begin with these hexadecimal digits, deleted ones included."""
    first, last = UUID(prefix.ljust(32, "0")), UUID(prefix.ljust(32, "f"))
    return Call(
        "select artifact_id from trunkline.artifacts"
        " where artifact_id between %s::uuid and %s::uuid order by artifact_id limit %s::integer",
        (first, last, limit),
        lambda rows: [row[0] for row in rows],
    )


def list_artifacts(
    *,
    job: UUID | None,
    workflow: UUID | None,
    kind: str | None,
    name: str | None,
    deleted: bool,
    limit: int,
    after: UUID | None,
) -> Call[list[Artifact]]:
    """Return artifacts, oldest first."""
    return Call(
        _SELECT + " from trunkline.list_artifacts(p_job => %s::uuid, p_workflow => %s::uuid,"
        " p_kind => %s, p_name => %s, p_deleted => %s::boolean, p_limit => %s::integer,"
        " p_after => %s::uuid)",
        (job, workflow, kind, plain_text(name), deleted, limit, after),
        rows_of(Artifact),
    )


def delete_artifact(artifact_id: UUID, reason: str | None) -> Call[bool]:
    """Delete an artifact; return whether it was not deleted before."""
    return Call(
        "select trunkline.delete_artifact(p_artifact => %s::uuid, p_reason => %s)",
        (artifact_id, plain_text(reason)),
        scalar,
    )


def storage() -> Call[list[StorageStatus]]:
    """Return what the artifacts of each tenant take."""
    return Call(
        "select tenant, used_bytes, files, reserved_bytes, max_bytes from trunkline.storage"
        " order by used_bytes desc, tenant limit 1000",
        (),
        rows_of(StorageStatus),
    )


def set_storage_quota(tenant: str | None, max_bytes: int | None) -> Call[None]:
    """Set how many bytes the artifacts of a tenant may take."""
    return Call(
        "select trunkline.set_storage_quota(p_tenant => %s, p_max_bytes => %s::bigint)",
        (tenant, max_bytes),
        nothing,
    )


def set_artifact_retention(kind: str, retention: float | None) -> Call[None]:
    """Set how long new artifacts of a kind are kept."""
    length = None if retention is None else timedelta(seconds=retention)
    return Call(
        "select trunkline.set_artifact_retention(p_kind => %s, p_retention => %s::interval)",
        (kind, length),
        nothing,
    )


def file_removals(limit: int) -> Call[list[FileRemoval]]:
    """Return files that wait to be deleted, the most urgent first."""
    return Call(
        "select path, reason, queued_at, due_at, tries, last_error from trunkline.file_removals"
        " order by due_at limit %s::integer",
        (limit,),
        rows_of(FileRemoval),
    )


def result_limits() -> Call[tuple[int, int]]:
    """Return the largest result that the database takes, and the largest for the store."""
    return Call(
        "select max(value) filter (where name = 'max_payload_bytes'),"
        " max(value) filter (where name = 'max_result_bytes')"
        " from (select name, value::bigint as value from trunkline.settings"
        " where name in ('max_payload_bytes', 'max_result_bytes')) as s",
        (),
        lambda rows: (rows[0][0], rows[0][1]),
    )


def storage_installation() -> Call[UUID]:
    """Return the name of this database in the store."""
    return Call("select trunkline.storage_installation()", (), scalar)


def take_removals(worker: str, limit: int) -> Call[list[str]]:
    """Take files to delete from the store."""
    return Call(
        "select path from trunkline.take_removals(p_worker => %s, p_limit => %s::integer)"
        " as taken (path)",
        (worker, limit),
        lambda rows: [path for (path,) in rows],
    )


def report_removals(worker: str, paths: Sequence[str], errors: Sequence[str | None]) -> Call[int]:
    """Record which files were deleted; an error leaves a file for a later try."""
    return Call(
        "select trunkline.report_removals(p_worker => %s, p_paths => %s::text[],"
        " p_errors => %s::text[])",
        (worker, list(paths), [plain_text(error) for error in errors]),
        scalar,
    )


def take_sweep(worker: str) -> Call[SweepTurn | None]:
    """Take the sweep of the store, if it is due and no other worker has it."""
    return Call(
        "select installation, file_cursor, before from trunkline.take_sweep(p_worker => %s)",
        (worker,),
        lambda rows: SweepTurn(*rows[0]) if rows else None,
    )


def report_files(worker: str, paths: Sequence[str], cursor: str | None) -> Call[int]:
    """Queue those files for removal that no row knows; return how many."""
    return Call(
        "select trunkline.report_files(p_worker => %s, p_paths => %s::text[], p_cursor => %s)",
        (worker, list(paths), cursor),
        scalar,
    )


def artifacts_to_check(worker: str, limit: int) -> Call[list[tuple[UUID, str, int]]]:
    """Return the next artifacts whose files the sweep looks up."""
    return Call(
        "select artifact_id, path, bytes"
        " from trunkline.artifacts_to_check(p_worker => %s, p_limit => %s::integer)",
        (worker, limit),
        lambda rows: [(row[0], row[1], row[2]) for row in rows],
    )


def report_checked(
    worker: str, cursor: UUID | None, missing: Sequence[UUID], found: Sequence[UUID]
) -> Call[int]:
    """Mark artifacts whose files are gone; return how many are newly missing."""
    return Call(
        "select trunkline.report_checked(p_worker => %s, p_cursor => %s::uuid,"
        " p_missing => %s::uuid[], p_found => %s::uuid[])",
        (worker, cursor, list(missing), list(found)),
        scalar,
    )
