-- Takes a place among those who charge a gate without holding it, until the transaction ends, waiting for whoever is in the way.
create or replace function trunkline_internal.share_gate(p_gate bigint)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(1953657445, hashint8(p_gate));
  if not trunkline_internal.try_share(p_gate => p_gate) then
    -- All eight are taken: the one it tried first, as try_share numbers them.
    perform pg_advisory_xact_lock(1953657446 + pg_backend_pid() % 8, hashint8(p_gate));
  end if;
end;
$$;
comment on function trunkline_internal.share_gate(bigint) is 'Takes a place among those who charge a gate without holding it, until the transaction ends, waiting for whoever is in the way.';
