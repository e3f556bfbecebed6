-- What the artifacts of each tenant take, what running uploads reserve, and the quota.
-- A completion adds to used_bytes what it takes from reserved_bytes. max_bytes is that of the function storage_quota, which
-- readers of the view may not call.
create or replace view trunkline.storage with (security_barrier = true) as
select
  nullif(t.tenant, '') as tenant,
  coalesce(u.bytes, 0)::bigint as used_bytes,
  coalesce(u.files, 0)::bigint as files,
  coalesce(s.reserved, 0)::bigint as reserved_bytes,
  coalesce(
    (select q.max_bytes from trunkline_internal.storage_quotas as q where q.tenant = t.tenant),
    (
      select nullif(coalesce(s.value, s.default_value)::bigint, 0) * 1048576
      from trunkline_internal.settings as s where s.name = 'storage_quota_mb'
    )
  ) as max_bytes
from (
  select g.tenant from trunkline_internal.storage_usage as g
  union
  select q.tenant from trunkline_internal.storage_quotas as q
) as t
left join lateral (
  select sum(u.bytes) as bytes, sum(u.files) as files from trunkline_internal.storage_usage as u where u.tenant = t.tenant
) as u on true
left join lateral (
  select sum(greatest(s.reserved_bytes, s.bytes)) as reserved
  from trunkline_internal.staged_artifacts as s
  where coalesce(s.tenant, '') = t.tenant
    and (s.kept or exists (select from trunkline_internal.running as r where r.job_id = s.job_id and r.attempt = s.attempt))
) as s on true
where (select trunkline.tenant_scope() is null) or t.tenant = (select trunkline.tenant_scope());
comment on view trunkline.storage is 'What the artifacts of each tenant take, what running uploads reserve, and the quota.';
