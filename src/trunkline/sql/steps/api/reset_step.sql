-- Deletes recorded steps of a job that does not run, so that the next attempt runs them again; returns how many.
-- All calls of a name, or one of them with p_key. Of a step that ran once for the job's workflow, the result is deleted for all
-- of its jobs. Locks the row of waiting or dead, so that no attempt starts meanwhile.
create or replace function trunkline.reset_step(p_job uuid, p_name text, p_key text default null, p_reason text default null)
returns integer
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_done integer;
  v_scope text := trunkline.tenant_scope();
  v_state text;
  v_tenant text;
  v_workflow uuid;
begin
  perform trunkline_internal.require_read_committed();
  select w.state, w.tenant, w.workflow_id into v_state, v_tenant, v_workflow
  from trunkline_internal.waiting as w
  where w.job_id = p_job and (v_scope is null or w.tenant = v_scope)
  for update of w;
  if not found then
    select 'dead', d.tenant, d.workflow_id into v_state, v_tenant, v_workflow
    from trunkline_internal.dead as d
    where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
    for update of d;
  end if;
  if not found then
    perform trunkline_internal.refuse_state(
      p_job => p_job,
      p_state => coalesce(
        trunkline_internal.visible_live_state(p_job => p_job, p_scope => v_scope),
        trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope)
      ),
      p_allowed => array['ready', 'scheduled', 'blocked', 'dead']
    );
  end if;
  v_done := trunkline_internal.delete_steps(p_job => p_job, p_name => p_name, p_key => p_key)
    + trunkline_internal.delete_once(p_scope => coalesce(v_workflow, p_job), p_name => p_name, p_key => p_key);
  if v_done = 0 then
    perform trunkline_internal.refuse(
      p_name => 'unknown_recorded_step',
      p_detail => jsonb_build_object('job', p_job, 'step', p_name, 'key', p_key)
    );
  end if;
  perform trunkline_internal.log_action(
    p_action => 'reset_step', p_kind => 'job', p_object => p_job::text,
    p_before => jsonb_build_object('state', v_state, 'step', p_name, 'key', p_key, 'recorded', v_done),
    p_after => jsonb_build_object('recorded', 0), p_reason => p_reason, p_tenant => v_tenant
  );
  return v_done;
end;
$$;
comment on function trunkline.reset_step(uuid, text, text, text) is 'Deletes recorded steps of a job that does not run, so that the next attempt runs them again; returns how many.';
