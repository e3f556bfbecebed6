-- Deletes a dead letter permanently, with its steps; its history in events stays.
-- dead -> none.
create or replace function trunkline.discard(p_job uuid, p_reason text default null)
returns trunkline.changed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_dead trunkline_internal.dead%rowtype;
  v_hash text;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  delete from trunkline_internal.dead as d
  where d.job_id = p_job and (v_scope is null or d.tenant = v_scope)
  returning d.* into v_dead;
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
  v_hash := encode(sha256(convert_to(coalesce(v_dead.payload, (
    select b.body from trunkline_internal.bodies as b
    where b.job_id = p_job and b.kind = 'payload' and b.day = v_dead.payload_day
  ))::text, 'UTF8')), 'hex');
  delete from trunkline_internal.bodies as b
  where b.job_id = p_job and b.kind = 'payload' and b.day = v_dead.payload_day;
  perform trunkline_internal.drop_job_steps(p_jobs => array[p_job]);
  perform trunkline_internal.record_event(
    p_at => trunkline.clock(), p_job => p_job, p_attempt => v_dead.attempt, p_kind => 'discarded',
    p_to_state => null, p_task => v_dead.task, p_queue => v_dead.queue, p_tenant => v_dead.tenant,
    p_worker => null, p_detail => jsonb_build_object('reason', left(p_reason, 500), 'reason_of_death', v_dead.reason)
  );
  perform trunkline_internal.log_action(
    p_action => 'discard', p_kind => 'job', p_object => p_job::text,
    p_before => jsonb_build_object(
      'state', 'dead', 'task', v_dead.task, 'reason', v_dead.reason, 'payload_sha256', v_hash
    ),
    p_after => null, p_reason => p_reason, p_tenant => v_dead.tenant
  );
  return row(p_job, 'discarded', null)::trunkline.changed_job;
end;
$$;
comment on function trunkline.discard(uuid, text) is 'Deletes a dead letter permanently, with its steps; its history in events stays.';
