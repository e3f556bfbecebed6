-- Cancels a waiting job at once, or asks the worker of a running job to stop; returns which, or that the job had already ended.
-- ready | scheduled | blocked -> cancelled; a running job keeps running until its worker or reclaim sees the request.
-- For a running job it notifies channel trunkline_cancel with the job's id, so that the worker need not wait for its next
-- heartbeat.
-- A single statement would wait for a concurrent claim and then change nothing. So it tries waiting, then running, then
-- waiting again, for at most three rounds.
create or replace function trunkline.cancel(p_job uuid, p_reason text default null)
returns trunkline.changed_job
language plpgsql
volatile
security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ended text;
  v_gone trunkline_internal.waiting%rowtype;
  v_now timestamptz;
  v_running record;
  v_scope text := trunkline.tenant_scope();
begin
  perform trunkline_internal.require_read_committed();
  for v_round in 1..3 loop
    delete from trunkline_internal.waiting as w
    where w.job_id = p_job and (v_scope is null or w.tenant = v_scope)
    returning w.* into v_gone;
    if found then
      v_now := trunkline.clock();
      perform trunkline_internal.finish_cancelled(p_job => v_gone, p_reason => p_reason, p_now => v_now);
      perform trunkline_internal.log_action(
        p_action => 'cancel', p_kind => 'job', p_object => p_job::text,
        p_before => jsonb_build_object('state', v_gone.state, 'task', v_gone.task),
        p_after => jsonb_build_object('state', 'cancelled', 'task', v_gone.task), p_reason => p_reason, p_tenant => v_gone.tenant
      );
      return row(p_job, 'cancelled', 'cancelled')::trunkline.changed_job;
    end if;
    v_now := trunkline.clock();
    update trunkline_internal.running as r
    set
      cancel_requested_at = coalesce(r.cancel_requested_at, v_now),
      cancel_reason = coalesce(r.cancel_reason, left(p_reason, 500))
    where r.job_id = p_job and (v_scope is null or r.tenant = v_scope)
    returning r.attempt, r.task, r.queue, r.tenant, r.worker into v_running;
    if found then
      perform trunkline_internal.record_event(
        p_at => v_now, p_job => p_job, p_attempt => v_running.attempt, p_kind => 'cancel_requested',
        p_to_state => 'running', p_task => v_running.task, p_queue => v_running.queue,
        p_tenant => v_running.tenant, p_worker => v_running.worker,
        p_detail => jsonb_build_object('reason', left(p_reason, 500))
      );
      perform pg_notify('trunkline_cancel', p_job::text);
      perform trunkline_internal.notify_followers(p_ids => array[p_job]);
      perform trunkline_internal.log_action(
        p_action => 'cancel', p_kind => 'job', p_object => p_job::text,
        p_before => jsonb_build_object('state', 'running', 'task', v_running.task),
        p_after => jsonb_build_object('state', 'running', 'task', v_running.task, 'cancel_requested', true),
        p_reason => p_reason, p_tenant => v_running.tenant
      );
      return row(p_job, 'requested', 'running')::trunkline.changed_job;
    end if;
    v_ended := trunkline_internal.visible_end(p_job => p_job, p_scope => v_scope);
    if v_ended is not null then
      return row(p_job, 'ended', v_ended)::trunkline.changed_job;
    end if;
  end loop;
  perform trunkline_internal.refuse(p_name => 'unknown_job', p_detail => jsonb_build_object('job', p_job));
  -- Not reached: the refusal ends the call.
  return null;
end;
$$;
comment on function trunkline.cancel(uuid, text) is 'Cancels a waiting job at once, or asks the worker of a running job to stop; returns which, or that the job had already ended.';
