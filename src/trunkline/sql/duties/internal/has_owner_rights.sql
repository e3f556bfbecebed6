-- Returns true if a role can act as trunkline_owner: a superuser or a member. False for 0, which stands for PUBLIC.
create or replace function trunkline_internal.has_owner_rights(p_role oid)
returns boolean
language sql
stable
as $$
  select coalesce(
    pg_catalog.bool_or(pg_catalog.pg_has_role(r.oid, 'trunkline_owner', 'member')),
    false
  )
  from pg_catalog.pg_roles as r
  -- The only member of pg_database_owner is not listed anywhere else.
  where r.oid = case
    when p_role = 'pg_database_owner'::pg_catalog.regrole
    then (select d.datdba from pg_catalog.pg_database as d where d.datname = pg_catalog.current_database())
    else p_role
  end
$$;
comment on function trunkline_internal.has_owner_rights(oid) is 'Returns true if a role can act as trunkline_owner: a superuser or a member.';
