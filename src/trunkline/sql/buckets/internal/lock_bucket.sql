-- Locks a bucket until the transaction ends, waiting if necessary: a claim holds it for milliseconds.
create or replace function trunkline_internal.lock_bucket(p_bucket bigint)
returns void
language sql
volatile
as $$
  select pg_catalog.pg_advisory_xact_lock(1953657445, pg_catalog.hashint8(p_bucket))
$$;
comment on function trunkline_internal.lock_bucket(bigint) is 'Locks a bucket until the transaction ends, waiting if necessary: a claim holds it for milliseconds.';
