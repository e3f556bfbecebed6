-- Returns the lowest job id of a millisecond, to find jobs by the time of their creation; null for null.
create or replace function trunkline_internal.first_id(p_at timestamptz)
returns uuid
language sql
immutable
strict
as $$
  select (
    pg_catalog.lpad(
      pg_catalog.to_hex(greatest((extract(epoch from p_at at time zone 'UTC') * 1000)::bigint, 0)), 12, '0'
    ) || pg_catalog.repeat('0', 20)
  )::uuid
$$;
comment on function trunkline_internal.first_id(timestamptz) is 'Returns the lowest job id of a millisecond, to find jobs by the time of their creation; null for null.';
