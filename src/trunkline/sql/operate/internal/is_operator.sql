-- Returns whether the caller has the rights of an operator or of the owner; the caller is the one that tenant_scope describes.
create or replace function trunkline_internal.is_operator()
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller name := coalesce(nullif(current_setting('role'), 'none')::name, session_user);
begin
  return pg_has_role(v_caller, 'trunkline_operator', 'usage') or pg_has_role(v_caller, 'trunkline_owner', 'usage');
end;
$$;
comment on function trunkline_internal.is_operator() is 'Returns whether the caller has the rights of an operator or of the owner; the caller is the one that tenant_scope describes.';
