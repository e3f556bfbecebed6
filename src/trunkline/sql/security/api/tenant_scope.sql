-- Returns the tenant that this session acts for: null for all tenants, an empty string for none.
-- The setting trunkline.tenant and the JWT claims can only narrow a session to one tenant; they grant no right. If they
-- name different tenants, the session acts for neither. The right to act for all tenants comes from membership in one of
-- our roles, which no session can give itself. A role without it acts for the tenant only in a session of an
-- authenticator: such a login sets the claims of callers whose token it has checked, and anybody else could name any tenant.
-- The caller is the role in force outside definer functions (SET ROLE checks membership), so the result is the same in our
-- functions, in our views and under PostgREST.
create or replace function trunkline.tenant_scope()
returns text
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant text := nullif(current_setting('trunkline.tenant', true), '');
  v_caller name := coalesce(nullif(current_setting('role'), 'none')::name, session_user);
  v_claimed text;
  v_claims text;
  v_is_member boolean;
begin
  v_is_member := pg_has_role(v_caller, 'trunkline_worker', 'usage')
    or pg_has_role(v_caller, 'trunkline_producer', 'usage')
    or pg_has_role(v_caller, 'trunkline_operator', 'usage')
    or pg_has_role(v_caller, 'trunkline_reader', 'usage')
    or pg_has_role(v_caller, 'trunkline_owner', 'usage');
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
  if v_tenant is null and v_claimed is null then
    return case when v_is_member then null else '' end;
  end if;
  if v_tenant <> v_claimed or not (v_is_member or trunkline_internal.is_authenticator()) then
    return '';
  end if;
  return coalesce(v_tenant, v_claimed);
end;
$$;
comment on function trunkline.tenant_scope() is 'Returns the tenant that this session acts for: null for all tenants, an empty string for none.';
