-- Asks a worker to finish its running jobs and claim no more; its claims return nothing from now on.
create or replace function trunkline.drain_worker(p_worker text)
returns text
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_before jsonb;
  v_scope text := trunkline.tenant_scope();
  v_state text;
begin
  v_before := trunkline_internal.operated_state(p_kind => 'worker', p_object => p_worker);
  update trunkline_internal.workers as w
  set state = case when w.state = 'active' then 'draining' else w.state end
  where w.worker = p_worker and (v_scope is null or w.tenant = v_scope)
  returning w.state into v_state;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_worker', p_detail => jsonb_build_object('worker', p_worker));
  end if;
  perform trunkline_internal.log_change(
    p_action => 'drain_worker', p_kind => 'worker', p_object => p_worker, p_before => v_before
  );
  return v_state;
end;
$$;
comment on function trunkline.drain_worker(text) is 'Asks a worker to finish its running jobs and claim no more; its claims return nothing from now on.';
