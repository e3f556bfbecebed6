-- Takes a place among those who charge a bucket without holding it, until the transaction ends, waiting for whoever is in the way.
create or replace function trunkline_internal.share_bucket(p_bucket bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(1953657445, hashint8(p_bucket));
  if not trunkline_internal.try_share_bucket(p_bucket => p_bucket) then
    -- All eight are taken: the one it tried first, as try_share_bucket numbers them.
    perform pg_advisory_xact_lock(1953657446 + pg_backend_pid() % 8, hashint8(p_bucket));
  end if;
end;
$$;
comment on function trunkline_internal.share_bucket(bigint) is 'Takes a place among those who charge a bucket without holding it, until the transaction ends, waiting for whoever is in the way.';
