-- Returns the first rule for functions of duties that a function breaks, or null if it breaks none.
-- Duties run with the rights of trunkline_owner. So only roles that have these rights anyway may replace the function, or
-- create another one that the same call would find.
create or replace function trunkline_internal.broken_duty_rule(p_function text)
returns text
language plpgsql
stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_function record;
  v_name text[];
begin
  begin
    v_name := parse_ident(p_function);
  exception
    when invalid_parameter_value then
      v_name := null;
  end;
  if v_name is null or cardinality(v_name) <> 2 then
    return 'a name with its schema and without parentheses, such as app.clean_up';
  end if;
  select
    count(*) over () as namesakes, p.oid, p.prokind, p.pronargs - p.pronargdefaults as required, p.prorettype, p.proowner,
    n.oid as schema, n.nspowner, n.nspacl
  into v_function
  from pg_catalog.pg_proc as p
  join pg_catalog.pg_namespace as n on n.oid = p.pronamespace
  where n.nspname = v_name[1] and p.proname = v_name[2];
  return case
    when v_function.oid is null then 'a function that exists'
    when v_function.namesakes > 1 then 'the only function of its name in its schema'
    when v_function.prokind <> 'f' then 'a function, not a procedure, an aggregate or a window function'
    when v_function.required > 0 then 'a function without required arguments'
    when v_function.prorettype::regtype in ('trigger', 'event_trigger') then 'a function that is not made for triggers'
    when not trunkline_internal.has_owner_rights(p_role => v_function.proowner)
    then 'owned by a superuser or a member of trunkline_owner, because duties run with its rights'
    when not trunkline_internal.has_owner_rights(p_role => v_function.nspowner) or exists (
      select
      from aclexplode(coalesce(v_function.nspacl, acldefault('n', v_function.nspowner))) as a
      where a.privilege_type = 'CREATE' and not trunkline_internal.has_owner_rights(p_role => a.grantee)
    )
    then 'in a schema in which only superusers and members of trunkline_owner can create functions'
    when not has_schema_privilege('trunkline_owner', v_function.schema, 'usage')
      or not has_function_privilege('trunkline_owner', v_function.oid, 'execute')
    then 'executable by trunkline_owner: grant it usage on the schema and execute on the function'
  end;
end;
$$;
comment on function trunkline_internal.broken_duty_rule(text) is 'Returns the first rule for functions of duties that a function breaks, or null if it breaks none.';
