-- Refuses what concerns all tenants to a session that acts for one of them; p_detail names what it is.
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
comment on function trunkline_internal.require_all_tenants(jsonb) is 'Refuses what concerns all tenants to a session that acts for one of them; p_detail names what it is.';
