-- Returns the cursor that stands for a position in a list of jobs, as text that is safe in a URL.
create or replace function trunkline_internal.cursor_of(p_before uuid)
returns text
language sql
immutable
as $$
  select pg_catalog.translate(pg_catalog.encode(pg_catalog.uuid_send(p_before), 'base64'), '+/=', '-_')
$$;
comment on function trunkline_internal.cursor_of(uuid) is 'Returns the cursor that stands for a position in a list of jobs, as text that is safe in a URL.';
