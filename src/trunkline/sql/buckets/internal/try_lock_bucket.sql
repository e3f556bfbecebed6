-- Locks a bucket until the transaction ends, if it is free; returns whether it did.
-- The lock number has 32 bits. Two buckets with the same number only exclude each other.
create or replace function trunkline_internal.try_lock_bucket(p_bucket bigint)
returns boolean
language sql
volatile
as $$
  select pg_catalog.pg_try_advisory_xact_lock(1953657445, pg_catalog.hashint8(p_bucket))
$$;
comment on function trunkline_internal.try_lock_bucket(bigint) is 'Locks a bucket until the transaction ends, if it is free; returns whether it did.';
