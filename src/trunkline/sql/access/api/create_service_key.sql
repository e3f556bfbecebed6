-- Stores a service key of the HTTP API: its public id and the SHA-256 hash of its secret, which the caller has generated.
-- Requests with the key run in the role trunkline_<p_role>, for one tenant if p_tenant is set. The secret never reaches
-- the database, so that no log of statements has it.
create or replace function trunkline.create_service_key(
  p_key text,
  p_hash text,
  p_name text,
  p_role text,
  p_tenant text default null,
  p_expires_at timestamptz default null
)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong text;
begin
  perform trunkline_internal.require_all_tenants(p_detail => jsonb_build_object('service_key', p_key));
  v_wrong := case
    when p_key !~ '^[0-9a-z]{12}$' or p_key is null then 'p_key'
    when p_hash !~ '^[0-9a-f]{64}$' or p_hash is null then 'p_hash'
    when length(p_name) not between 1 and 100 or p_name is null then 'p_name'
    when p_role not in ('operator', 'producer', 'reader') or p_role is null then 'p_role'
    when p_tenant = '' or length(p_tenant) > 200 then 'p_tenant'
    when p_expires_at <= trunkline.clock() or not isfinite(p_expires_at) then 'p_expires_at'
    when exists (select from trunkline_internal.service_keys as k where k.key_id = p_key) then 'p_key'
  end;
  if v_wrong is not null then
    perform trunkline_internal.refuse(
      p_name => 'invalid_argument',
      p_detail => jsonb_build_object(
        'argument', v_wrong,
        'must_be', case v_wrong
          when 'p_key' then '12 lower-case letters and digits, unused so far'
          when 'p_hash' then '64 hexadecimal digits'
          when 'p_name' then '1 to 100 characters'
          when 'p_role' then 'operator, producer or reader'
          when 'p_tenant' then 'null, or 1 to 200 characters'
          else 'null, or a time in the future'
        end
      )
    );
  end if;
  insert into trunkline_internal.service_keys (key_id, created_at, expires_at, secret_hash, name, role, for_tenant, created_by)
  values (p_key, trunkline.clock(), p_expires_at, decode(p_hash, 'hex'), p_name, p_role, p_tenant, session_user);
  perform trunkline_internal.log_action(
    p_action => 'create_service_key', p_kind => 'service_key', p_object => p_key, p_before => null,
    p_after => jsonb_build_object('name', p_name, 'role', p_role, 'tenant', p_tenant, 'expires_at', p_expires_at),
    p_tenant => p_tenant
  );
end;
$$;
comment on function trunkline.create_service_key(text, text, text, text, text, timestamptz) is 'Stores a service key of the HTTP API: its public id and the SHA-256 hash of its secret, which the caller has generated.';
