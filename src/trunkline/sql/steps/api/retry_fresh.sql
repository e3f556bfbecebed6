-- Runs a dead letter again under its id without its recorded steps, so that all of them run again.
-- dead -> ready, as retry. Locks the row of dead.
create or replace function trunkline.retry_fresh(p_job uuid)
returns trunkline.enqueued
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_scope text := trunkline.tenant_scope();
  v_steps integer;
  v_tenant text;
begin
  perform trunkline_internal.require_read_committed();
  select d.tenant into v_tenant
  from trunkline_internal.dead as d
  where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
  for update of d;
  if not found then
    perform trunkline_internal.refuse_state(
      p_job => p_job,
      p_state => coalesce(
        trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope),
        trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope)
      ),
      p_allowed => array['dead']
    );
  end if;
  v_steps := trunkline_internal.delete_steps(p_job => p_job, p_name => null, p_key => null);
  delete from trunkline_internal.job_waits as w where w.job_id = p_job;
  delete from trunkline_internal.once_steps as o where o.scope = p_job;
  -- The line of retry follows.
  perform trunkline_internal.log_action(
    p_action => 'retry_fresh', p_kind => 'job', p_object => p_job::text,
    p_before => jsonb_build_object('state', 'dead', 'recorded', v_steps),
    p_after => jsonb_build_object('state', 'ready', 'recorded', 0), p_tenant => v_tenant
  );
  return trunkline.retry(p_job => p_job);
end;
$$;
comment on function trunkline.retry_fresh(uuid) is 'Runs a dead letter again under its id without its recorded steps, so that all of them run again.';
