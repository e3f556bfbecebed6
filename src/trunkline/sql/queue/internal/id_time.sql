-- Reads the time of making out of a UUIDv7, so that look-ups by id need not visit older partitions.
create or replace function trunkline_internal.id_time(p_id uuid)
returns timestamptz
language sql
immutable
as $$
  select pg_catalog.to_timestamp(
    ('x' || pg_catalog.left(pg_catalog.replace(p_id::text, '-', ''), 12))::bit(48)::bigint / 1000.0
  )
$$;
comment on function trunkline_internal.id_time(uuid) is 'Reads the time of making out of a UUIDv7, so that look-ups by id need not visit older partitions.';
