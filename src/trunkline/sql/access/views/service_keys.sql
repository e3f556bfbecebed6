-- Service keys of the HTTP API, without their secrets: role, tenant, when each was last used and whether it still works.
create or replace view trunkline.service_keys with (security_barrier = true) as
select
  k.key_id, k.name, k.role, k.for_tenant as tenant, k.created_at, k.created_by, k.expires_at, k.revoked_at, k.revoked_by, k.last_used_at,
  k.revoked_at is null and (k.expires_at is null or k.expires_at > trunkline.clock()) as active
from trunkline_internal.service_keys as k
where (select trunkline.tenant_scope()) is null;
comment on view trunkline.service_keys is 'Service keys of the HTTP API, without their secrets: role, tenant, when each was last used and whether it still works.';
