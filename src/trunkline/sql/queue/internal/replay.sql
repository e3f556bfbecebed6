-- Puts a dead letter, already taken out of dead by the caller, back to ready with failures, crashes and deferrals at zero.
-- dead -> ready. Its attempt number continues, because it is the fence. It does not expire, because a person requested it now.
create or replace function trunkline_internal.replay(p_dead trunkline_internal.dead, p_detail jsonb default '{}')
returns trunkline.enqueued
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_holder uuid;
  v_now timestamptz := trunkline.clock();
  v_policy trunkline_internal.tasks := trunkline_internal.task_policy(p_task => p_dead.task);
begin
  if p_dead.unique_key is not null then
    v_holder := trunkline_internal.hold_unique_key(
      p_profile => v_policy.profile, p_tenant => p_dead.tenant, p_task => p_dead.task,
      p_unique_key => p_dead.unique_key, p_job => p_dead.job_id
    );
    if v_holder <> p_dead.job_id then
      perform trunkline_internal.refuse(
        p_name => 'unique_key_held',
        p_detail => jsonb_build_object('job', p_dead.job_id, 'unique_key', p_dead.unique_key, 'holder', v_holder)
      );
    end if;
  end if;
  perform trunkline_internal.ensure_lane(p_queue => p_dead.queue, p_lane => p_dead.priority * 2);
  insert into trunkline_internal.waiting (
    state, reason, run_at, sequence, failures, crashes, deferrals, expires_at,
    -- <job columns: dead to waiting>
    job_id, task, queue, tenant, attempt, max_attempts, created_at, unique_key, correlation_id, retry_of, tags, last_error,
    payload, payload_day, lane, bucket, cost_requests, cost_tokens, cost_units, limit_ids, bucket_ids, workflow_id,
    workflow_step, workflow_item
    -- </job>
  )
  values (
    'ready', 'replayed', v_now, nextval('trunkline_internal.job_sequence'), 0, 0, 0, null,
    -- <job values: p_dead>
    p_dead.job_id, p_dead.task, p_dead.queue, p_dead.tenant, p_dead.attempt, p_dead.max_attempts, p_dead.created_at,
    p_dead.unique_key, p_dead.correlation_id, p_dead.retry_of, p_dead.tags, p_dead.last_error, p_dead.payload,
    p_dead.payload_day, p_dead.priority * 2, p_dead.bucket_ids[1], p_dead.cost_requests, p_dead.cost_tokens,
    p_dead.cost_units, p_dead.limit_ids, p_dead.bucket_ids, p_dead.workflow_id, p_dead.workflow_step, p_dead.workflow_item
    -- </job>
  );
  if p_dead.bucket_ids is not null then
    perform trunkline_internal.open_buckets(p_jobs => array[p_dead.job_id]);
  end if;
  perform trunkline_internal.record_event(
    p_at => v_now, p_job => p_dead.job_id, p_attempt => p_dead.attempt, p_kind => 'replayed',
    p_to_state => 'ready', p_task => p_dead.task, p_queue => p_dead.queue, p_tenant => p_dead.tenant,
    p_worker => null, p_detail => jsonb_build_object('reason_of_death', p_dead.reason, 'failures', p_dead.failures) || p_detail
  );
  perform trunkline_internal.wake_sleepers(p_queues => array[p_dead.queue]);
  perform trunkline_internal.notify_followers(p_ids => array[p_dead.job_id]);
  if p_dead.workflow_id is not null then
    perform trunkline_internal.reopen_jobs(p_jobs => array[p_dead.job_id], p_now => v_now);
  end if;
  return row(p_dead.job_id, false, 'ready', v_now)::trunkline.enqueued;
end;
$$;
comment on function trunkline_internal.replay(trunkline_internal.dead, jsonb) is 'Puts a dead letter, already taken out of dead by the caller, back to ready with failures, crashes and deferrals at zero.';
