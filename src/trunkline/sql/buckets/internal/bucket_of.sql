-- Returns the number of a bucket: a hash of its name, so that a new key needs no row that transactions would wait for.
-- With a million keys, two of them share a number in one of thirty million installations; they would share a limit.
create or replace function trunkline_internal.bucket_of(p_name text)
returns bigint
language sql
immutable
parallel safe
as $$
  select pg_catalog.hashtextextended(p_name, 0)
$$;
comment on function trunkline_internal.bucket_of(text) is 'Returns the number of a bucket: a hash of its name, so that a new key needs no row that transactions would wait for.';
