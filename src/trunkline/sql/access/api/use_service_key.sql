-- Returns a service key that is neither revoked nor expired, with the hash of its secret, and records when it was used.
-- The server compares the hash. The time is written once a minute at most, and not while another session writes it.
create or replace function trunkline.use_service_key(p_key text)
returns table (name text, role text, tenant text, secret_hash text, expires_at timestamptz)
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := trunkline.clock();
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('service_key', p_key));
  update trunkline_internal.service_keys as k
  set last_used_at = v_now
  where k.key_id = (
    select u.key_id
    from trunkline_internal.service_keys as u
    where u.key_id = p_key and u.revoked_at is null
      and (u.last_used_at is null or u.last_used_at <= v_now - interval '1 minute')
    for update skip locked
  );
  return query
  select k.name, k.role, k.for_tenant, encode(k.secret_hash, 'hex'), k.expires_at
  from trunkline_internal.service_keys as k
  where k.key_id = p_key and k.revoked_at is null and (k.expires_at is null or k.expires_at > v_now);
end;
$$;
comment on function trunkline.use_service_key(text) is 'Returns a service key that is neither revoked nor expired, with the hash of its secret, and records when it was used.';
