-- Takes one of the eight places of those who charge a bucket without holding it, until the transaction ends, if nobody holds the bucket; tells whether it did.
-- Two buckets that share a number only leave fewer places to each other.
create or replace function trunkline_internal.try_share_bucket(p_bucket bigint)
returns boolean
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  c_places constant integer := 8;
begin
  -- The bucket first, and always the same place: who tries again must not gather places.
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
comment on function trunkline_internal.try_share_bucket(bigint) is 'Takes one of the eight places of those who charge a bucket without holding it, until the transaction ends, if nobody holds the bucket; tells whether it did.';
