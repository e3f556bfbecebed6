-- Sets how many bytes the artifacts of a tenant may take; null restores the setting storage_quota_mb.
create or replace function trunkline.set_storage_quota(p_tenant text, p_max_bytes bigint)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('tenant', p_tenant));
  if length(p_tenant) > 200 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', 'p_tenant', 'must_be', 'at most 200 characters, or null')
    );
  end if;
  if p_max_bytes < 0 then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument', p_detail => jsonb_build_object('argument', 'p_max_bytes', 'must_be', 'zero or more, or null')
    );
  end if;
  select jsonb_build_object('max_bytes', q.max_bytes) into v_before
  from trunkline_internal.storage_quotas as q
  where q.tenant = coalesce(p_tenant, '')
  for update of q;
  if p_max_bytes is null then
    delete from trunkline_internal.storage_quotas as q where q.tenant = coalesce(p_tenant, '');
  else
    insert into trunkline_internal.storage_quotas as q (tenant, max_bytes, updated_at, updated_by)
    values (coalesce(p_tenant, ''), p_max_bytes, trunkline.clock(), session_user)
    on conflict (tenant) do update
    set max_bytes = excluded.max_bytes, updated_at = excluded.updated_at, updated_by = excluded.updated_by;
  end if;
  if v_before ->> 'max_bytes' is distinct from p_max_bytes::text then
    perform trunkline_internal.log_action(
      p_action => 'set_storage_quota', p_kind => 'storage', p_object => coalesce(p_tenant, ''), p_before => v_before,
      p_after => jsonb_build_object('max_bytes', p_max_bytes), p_tenant => p_tenant
    );
  end if;
end;
$$;
comment on function trunkline.set_storage_quota(text, bigint) is 'Sets how many bytes the artifacts of a tenant may take; null restores the setting storage_quota_mb.';
