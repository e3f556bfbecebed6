-- Makes a UUIDv7 of the engine's clock; ids sort by time.
create or replace function trunkline_internal.new_id(p_now timestamptz)
returns uuid
language sql
volatile
as $$
  select (
    trunkline_internal.new_id_prefix(p_now => p_now) || pg_catalog.substr(pg_catalog.gen_random_uuid()::text, 16)
  )::uuid
$$;
comment on function trunkline_internal.new_id(timestamptz) is 'Makes a UUIDv7 of the engine''s clock; ids sort by time.';
