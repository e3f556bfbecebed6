-- Returns the names of the fields of a request but those of p_except, in the order of the type trunkline_internal.request.
-- Immutable, although it reads the catalogue, so that a session reads it once: the type changes only with an upgrade,
-- which also replaces every function that calls this one.
create or replace function trunkline_internal.request_fields(p_except text[])
returns text[]
language plpgsql
immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select a.attname::text
    from pg_catalog.pg_attribute as a
    where a.attrelid = 'trunkline_internal.request'::regclass
      and a.attnum > 0
      and not a.attisdropped
      and a.attname <> all(p_except)
    order by a.attnum
  );
end;
$$;
comment on function trunkline_internal.request_fields(text[]) is 'Returns the names of the fields of a request but those of p_except, in the order of the type trunkline_internal.request.';
