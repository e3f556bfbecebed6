-- Returns whether a limit may have this name: 1 to 200 bytes, and keys in braces that remain distinguishable once filled in.
-- The text between two keys must not be empty or start with a letter, a digit or %, because encoded values contain those.
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
comment on function trunkline_internal.is_limit_name(text) is 'Returns whether a limit may have this name: 1 to 200 bytes, and keys in braces that remain distinguishable once filled in.';
