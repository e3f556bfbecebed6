-- Takes the lock of a bucket until the transaction ends, if nobody has it; tells whether it did.
-- A number of 32 bits: two buckets that share one only make room for each other.
create or replace function trunkline_internal.try_lock_bucket(p_bucket bigint)
returns boolean
language sql
volatile
as $$
  select pg_catalog.pg_try_advisory_xact_lock(1953657445, pg_catalog.hashint8(p_bucket))
$$;
comment on function trunkline_internal.try_lock_bucket(bigint) is 'Takes the lock of a bucket until the transaction ends, if nobody has it; tells whether it did.';
