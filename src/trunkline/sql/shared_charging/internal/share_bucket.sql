-- Takes one of the eight shared locks of a bucket until the transaction ends, waiting if necessary.
create or replace function trunkline_internal.share_bucket(p_bucket bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(1953657445, hashint8(p_bucket));
  if not trunkline_internal.try_share_bucket(p_bucket => p_bucket) then
    -- All eight are taken: wait for the one that try_share_bucket tried first.
    perform pg_advisory_xact_lock(1953657446 + pg_backend_pid() % 8, hashint8(p_bucket));
  end if;
end;
$$;
comment on function trunkline_internal.share_bucket(bigint) is 'Takes one of the eight shared locks of a bucket until the transaction ends, waiting if necessary.';
