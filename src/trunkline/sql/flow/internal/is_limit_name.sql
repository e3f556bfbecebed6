-- Returns whether a name can be that of a limit: 1 to 200 bytes, and keys in braces that can be told apart once they are filled in.
-- After a key the next one cannot follow at once, nor after a letter, a digit or %, which encoded values have.
create or replace function trunkline_internal.is_limit_name(p_name text)
returns boolean
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    p_name <> ''
      and octet_length(p_name) <= 200
      and p_name !~ '[}]([0-9A-Za-z%][^{}]*)?[{]',
    false
  )
$$;
comment on function trunkline_internal.is_limit_name(text) is 'Returns whether a name can be that of a limit: 1 to 200 bytes, and keys in braces that can be told apart once they are filled in.';
