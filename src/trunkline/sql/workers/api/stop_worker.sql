-- Records that a worker process has stopped normally, so that its silence does not count as a death.
create or replace function trunkline.stop_worker(p_worker text)
returns void
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
begin
  update trunkline_internal.workers as w
  set state = 'stopped', seen_at = greatest(trunkline.clock(), w.started_at)
  where w.worker = p_worker and (v_scope is null or w.tenant = v_scope);
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_worker', p_detail => jsonb_build_object('worker', p_worker));
  end if;
  delete from trunkline_internal.sleepers as s where s.worker = p_worker;
end;
$$;
comment on function trunkline.stop_worker(text) is 'Records that a worker process has stopped normally, so that its silence does not count as a death.';
