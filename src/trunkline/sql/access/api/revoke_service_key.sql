-- Revokes a service key of the HTTP API for good; returns false if it was revoked before.
-- Locks the key. Servers that have read the key accept it for a few seconds more.
create or replace function trunkline.revoke_service_key(p_key text, p_reason text default null)
returns boolean
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_key trunkline_internal.service_keys%rowtype;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('service_key', p_key));
  select k.* into v_key from trunkline_internal.service_keys as k where k.key_id = p_key for update;
  if not found then
    perform trunkline_internal.refuse(
      p_name => 'unknown_service_key', p_detail => jsonb_build_object('service_key', p_key)
    );
  end if;
  if v_key.revoked_at is not null then
    return false;
  end if;
  update trunkline_internal.service_keys as k
  set revoked_at = trunkline.clock(), revoked_by = session_user
  where k.key_id = p_key;
  perform trunkline_internal.log_action(
    p_action => 'revoke_service_key', p_kind => 'service_key', p_object => p_key,
    p_before => jsonb_build_object('name', v_key.name, 'role', v_key.role, 'tenant', v_key.for_tenant),
    p_after => null, p_reason => p_reason, p_tenant => v_key.for_tenant
  );
  return true;
end;
$$;
comment on function trunkline.revoke_service_key(text, text) is 'Revokes a service key of the HTTP API for good; returns false if it was revoked before.';
