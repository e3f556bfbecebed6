-- Artifacts of completed jobs, deleted ones included until their tombstone is dropped.
create or replace view trunkline.artifacts with (security_barrier = true) as
select
  a.artifact_id, a.job_id, a.workflow_id, a.tenant, a.task, a.attempt, a.step, a.name, a.kind, a.content_type, a.bytes, a.sha256,
  a.duration, a.path as storage_path, a.published_at, a.expires_at, a.deleted_at, a.deleted_by, a.delete_reason, a.missing_at
from trunkline_internal.artifacts as a
where (select trunkline.tenant_scope() is null) or a.tenant = (select trunkline.tenant_scope());
comment on view trunkline.artifacts is 'Artifacts of completed jobs, deleted ones included until their tombstone is dropped.';
