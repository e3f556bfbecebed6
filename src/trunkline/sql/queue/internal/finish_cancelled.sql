-- Keeps a job that was cancelled before it ran, frees its unique key and records the event.
-- waiting (already deleted by the caller) -> cancelled.
create or replace function trunkline_internal.finish_cancelled(
  p_job trunkline_internal.waiting,
  p_reason text,
  p_now timestamptz
)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into trunkline_internal.finished (
    state, finished_at, reason,
    -- <job columns: waiting to finished>
    job_id, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, unique_key,
    correlation_id, retry_of, tags, last_error, payload, payload_day, expires_at, workflow_id, workflow_step, workflow_item
    -- </job>
  )
  values (
    'cancelled', p_now, coalesce(left(p_reason, 500), 'cancelled'),
    -- <job values: p_job>
    p_job.job_id, p_job.task, p_job.queue, p_job.lane >> 1, p_job.tenant, p_job.attempt, p_job.failures, p_job.max_attempts,
    p_job.deferrals, p_job.created_at, p_job.run_at, p_job.unique_key, p_job.correlation_id, p_job.retry_of, p_job.tags,
    p_job.last_error, p_job.payload, p_job.payload_day, p_job.expires_at, p_job.workflow_id, p_job.workflow_step,
    p_job.workflow_item
    -- </job>
  );
  if p_job.unique_key is not null then
    delete from trunkline_internal.unique_keys as k where k.job_id = p_job.job_id;
  end if;
  if p_job.state = 'blocked' then
    delete from trunkline_internal.set_aside as a where a.job_id = p_job.job_id;
  end if;
  perform trunkline_internal.record_event(
    p_at => p_now, p_job => p_job.job_id, p_attempt => p_job.attempt, p_kind => 'cancelled',
    p_to_state => 'cancelled', p_task => p_job.task, p_queue => p_job.queue, p_tenant => p_job.tenant,
    p_worker => null, p_detail => jsonb_build_object('reason', left(p_reason, 500), 'from', p_job.state)
  );
  perform trunkline_internal.notify_followers(p_ids => array[p_job.job_id]);
  if p_job.workflow_id is not null then
    perform trunkline_internal.end_workflow_jobs(
      p_ended => array[row(
        p_job.workflow_id, p_job.workflow_step, p_job.workflow_item, p_job.job_id, 'cancelled', p_job.cost_requests,
        p_job.cost_tokens, p_job.cost_units, p_job.limit_ids, p_job.bucket_ids
      )::trunkline_internal.workflow_end],
      p_now => p_now
    );
  end if;
end;
$$;
comment on function trunkline_internal.finish_cancelled(trunkline_internal.waiting, text, timestamptz) is 'Keeps a job that was cancelled before it ran, frees its unique key and records the event.';
