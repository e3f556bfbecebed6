-- Refuses a change that affects all tenants if the session acts for one tenant; p_detail names the change.
create or replace function trunkline_internal.require_all_tenants(p_detail jsonb)
returns void
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if trunkline.tenant_scope() is not null then
    perform trunkline_internal.refuse(p_name => 'needs_all_tenants', p_detail => p_detail);
  end if;
end;
$$;
comment on function trunkline_internal.require_all_tenants(jsonb) is 'Refuses a change that affects all tenants if the session acts for one tenant; p_detail names the change.';
