-- Locks the counting of failures of buckets until the transaction ends; returns the buckets that it locked.
-- A caller that must not wait, such as recovery, gets only those that are free. 256 locks serve all buckets, taken in order:
-- two buckets with the same lock only wait for each other, and no batch fills the server's lock table.
create or replace function trunkline_internal.lock_breakers(p_buckets bigint[], p_wait boolean)
returns bigint[]
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_turns constant integer := 1953653362;
  v_had integer[] := array[]::integer[];
  v_turn integer;
begin
  for v_turn in
    select distinct hashint8(g.bucket) & 255 as turn from unnest(p_buckets) as g (bucket) order by turn
  loop
    if p_wait then
      perform pg_advisory_xact_lock(c_turns, v_turn);
    elsif not pg_try_advisory_xact_lock(c_turns, v_turn) then
      continue;
    end if;
    v_had := v_had || v_turn;
  end loop;
  return array(select g.bucket from unnest(p_buckets) as g (bucket) where hashint8(g.bucket) & 255 = any(v_had));
end;
$$;
comment on function trunkline_internal.lock_breakers(bigint[], boolean) is 'Locks the counting of failures of buckets until the transaction ends; returns the buckets that it locked.';
