-- Returns the tenant that this session acts for: null for all tenants, an empty string for none.
-- The setting trunkline.tenant can only narrow a session to one tenant; it grants no right. If the setting and the JWT
-- claims name different tenants, the session acts for neither. The right to act for all tenants comes from membership in
-- one of our roles, which no session can give itself. The caller is the role in force outside definer functions (SET ROLE
-- checks membership), so the result is the same in our functions, in our views and under PostgREST.
create or replace function trunkline.tenant_scope()
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant text := nullif(current_setting('trunkline.tenant', true), '');
  v_caller name;
  v_claimed text;
  v_claims text;
begin
  v_claims := nullif(current_setting('request.jwt.claims', true), '');
  if v_claims is not null then
    -- Claims that cannot be parsed name no tenant; they must not raise an error in every view.
    begin
      v_claimed := nullif(v_claims::jsonb ->> trunkline_internal.setting(p_name => 'tenant_claim'), '');
    exception
      when data_exception or program_limit_exceeded then
        v_claimed := null;
    end;
  end if;
  if v_tenant <> v_claimed then
    return '';
  end if;
  if coalesce(v_tenant, v_claimed) is not null then
    return coalesce(v_tenant, v_claimed);
  end if;
  v_caller := coalesce(nullif(current_setting('role'), 'none')::name, session_user);
  if pg_has_role(v_caller, 'trunkline_worker', 'usage')
    or pg_has_role(v_caller, 'trunkline_producer', 'usage')
    or pg_has_role(v_caller, 'trunkline_operator', 'usage')
    or pg_has_role(v_caller, 'trunkline_reader', 'usage')
    or pg_has_role(v_caller, 'trunkline_owner', 'usage')
  then
    return null;
  end if;
  return '';
end;
$$;
comment on function trunkline.tenant_scope() is 'Returns the tenant that this session acts for: null for all tenants, an empty string for none.';
