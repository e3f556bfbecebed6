-- Records that a worker process is alive and returns its state. A worker in state gone must register again.
create or replace function trunkline.pulse(p_worker text, p_detail jsonb default null)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_state text;
begin
  perform trunkline_internal.check_worker_detail(p_detail => p_detail);
  update trunkline_internal.workers as w
  set seen_at = greatest(trunkline.clock(), w.started_at), detail = coalesce(p_detail, w.detail)
  where w.worker = p_worker and (v_scope is null or w.tenant = v_scope) and w.state in ('active', 'draining')
  returning w.state into v_state;
  if found then
    return v_state;
  end if;
  select w.state into v_state from trunkline_internal.workers as w where w.worker = p_worker and (v_scope is null or w.tenant = v_scope);
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_worker', p_detail => jsonb_build_object('worker', p_worker));
  end if;
  return v_state;
end;
$$;
comment on function trunkline.pulse(text, jsonb) is 'Records that a worker process is alive and returns its state. A worker in state gone must register again.';
