-- Deletes a dead letter permanently; its events stay.
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
  delete from trunkline_internal.bodies as b
  where b.job_id = p_job and b.kind = 'payload' and b.day = v_dead.payload_day;
  perform trunkline_internal.record_event(
    p_at => trunkline.clock(), p_job => p_job, p_attempt => v_dead.attempt, p_kind => 'discarded',
    p_to_state => null, p_task => v_dead.task, p_queue => v_dead.queue, p_tenant => v_dead.tenant,
    p_worker => null, p_detail => jsonb_build_object('reason', left(p_reason, 500), 'reason_of_death', v_dead.reason)
  );
  return row(p_job, 'discarded', null)::trunkline.changed_job;
end;
$$;
comment on function trunkline.discard(uuid, text) is 'Deletes a dead letter permanently; its events stay.';
