-- Whether the login of this session is one that the setting `authenticators` names.
create or replace function trunkline_internal.is_authenticator()
returns boolean
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return session_user = any (
    regexp_split_to_array(btrim(trunkline_internal.setting(p_name => 'authenticators')), '\s*,\s*')
  );
end;
$$;
comment on function trunkline_internal.is_authenticator() is 'Whether the login of this session is one that the setting `authenticators` names.';
