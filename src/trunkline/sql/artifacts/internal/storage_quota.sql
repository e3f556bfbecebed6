-- Returns how many bytes the artifacts of a tenant may take; null for any number.
create or replace function trunkline_internal.storage_quota(p_tenant text)
returns bigint
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (select q.max_bytes from trunkline_internal.storage_quotas as q where q.tenant = coalesce(p_tenant, '')),
    nullif(trunkline_internal.setting(p_name => 'storage_quota_mb')::bigint, 0) * 1048576
  );
end;
$$;
comment on function trunkline_internal.storage_quota(text) is 'Returns how many bytes the artifacts of a tenant may take; null for any number.';
