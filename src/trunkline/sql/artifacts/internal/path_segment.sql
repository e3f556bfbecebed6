-- Returns a text as one part of a path: safe on every file system, and different for different texts.
-- A text that consists of unsafe characters alone begins with a dash.
create or replace function trunkline_internal.path_segment(p_text text)
returns text
language sql
immutable
set search_path = pg_catalog, pg_temp
as $$
  -- A text that is safe already stays as it is. Any other ends with a hash of the original.
  select case
    when p_text ~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$' and p_text !~ '\.$' then p_text
    else left(regexp_replace(ltrim(p_text, '. _-'), '[^A-Za-z0-9._-]', '_', 'g'), 60) || '-' || left(md5(p_text), 16)
  end
$$;
comment on function trunkline_internal.path_segment(text) is 'Returns a text as one part of a path: safe on every file system, and different for different texts.';
