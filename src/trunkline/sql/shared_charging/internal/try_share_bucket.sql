-- Takes one of the eight shared locks of a bucket until the transaction ends, if the bucket is not held; returns whether it did.
-- Two buckets with the same lock number only leave fewer shared locks to each other.
create or replace function trunkline_internal.try_share_bucket(p_bucket bigint)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_places constant integer := 8;
begin
  -- The bucket first, and always starting with the same number, so that repeated calls do not collect several locks.
  if pg_try_advisory_xact_lock_shared(1953657445, hashint8(p_bucket)) then
    for v_turn in 0..c_places - 1 loop
      if pg_try_advisory_xact_lock(1953657446 + (pg_backend_pid() + v_turn) % c_places, hashint8(p_bucket)) then
        return true;
      end if;
    end loop;
  end if;
  return false;
end;
$$;
comment on function trunkline_internal.try_share_bucket(bigint) is 'Takes one of the eight shared locks of a bucket until the transaction ends, if the bucket is not held; returns whether it did.';
