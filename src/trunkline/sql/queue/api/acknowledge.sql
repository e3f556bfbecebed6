-- Marks a dead letter as seen by a person; the retention time of dead letters starts then.
-- dead -> dead.
create or replace function trunkline.acknowledge(p_job uuid)
returns trunkline.changed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead record;
  v_now timestamptz := trunkline.clock();
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  update trunkline_internal.dead as d
  set acknowledged_at = coalesce(d.acknowledged_at, v_now), acknowledged_by = coalesce(d.acknowledged_by, session_user)
  where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
  returning d.attempt, d.task, d.queue, d.tenant into v_dead;
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
  perform trunkline_internal.record_event(
    p_at => v_now, p_job => p_job, p_attempt => v_dead.attempt, p_kind => 'acknowledged', p_to_state => 'dead',
    p_task => v_dead.task, p_queue => v_dead.queue, p_tenant => v_dead.tenant, p_worker => null, p_detail => null
  );
  perform trunkline_internal.log_action(
    p_action => 'acknowledge', p_kind => 'job', p_object => p_job::text, p_before => null,
    p_after => jsonb_build_object('state', 'dead', 'task', v_dead.task), p_tenant => v_dead.tenant
  );
  return row(p_job, 'acknowledged', 'dead')::trunkline.changed_job;
end;
$$;
comment on function trunkline.acknowledge(uuid) is 'Marks a dead letter as seen by a person; the retention time of dead letters starts then.';
