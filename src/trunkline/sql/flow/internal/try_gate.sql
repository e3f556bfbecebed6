-- Takes the lock of a gate until the transaction ends, if nobody has it; tells whether it did.
-- A number of 32 bits: two gates that share one only make room for each other.
create or replace function trunkline_internal.try_gate(p_gate bigint)
returns boolean
language sql
volatile
as $$
  select pg_catalog.pg_try_advisory_xact_lock(1953657445, pg_catalog.hashint8(p_gate))
$$;
comment on function trunkline_internal.try_gate(bigint) is 'Takes the lock of a gate until the transaction ends, if nobody has it; tells whether it did.';
