-- Returns the tenant of a new job: the requested one, or the one that the session acts for; refuses any other.
create or replace function trunkline_internal.scoped_tenant(p_tenant text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  if v_scope is null then
    return p_tenant;
  end if;
  if v_scope = '' or p_tenant <> v_scope then
    perform trunkline_internal.refuse(
      p_name => 'tenant_denied',
      p_detail => jsonb_build_object('tenant', p_tenant)
    );
  end if;
  return v_scope;
end;
$$;
comment on function trunkline_internal.scoped_tenant(text) is 'Returns the tenant of a new job: the requested one, or the one that the session acts for; refuses any other.';
