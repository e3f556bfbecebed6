-- Returns why a job is not running and until when, one row per reason; for a running or ended job, its state and outcome.
create or replace function trunkline.explain(p_job uuid)
returns setof trunkline.explanation
language plpgsql
stable
security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_job trunkline.job_detail;
  v_place record;
  v_queue trunkline_internal.queues%rowtype;
begin
  select j.* into v_job from trunkline.job(p_job => p_job) as j;
  if not found then
    perform trunkline_internal.refuse(p_name => 'unknown_job', p_detail => jsonb_build_object('job', p_job));
  end if;
  if v_job.state = 'running' then
    return next row('running', v_job.lease_expires_at, jsonb_build_object(
      'worker', v_job.worker, 'attempt', v_job.attempt, 'claimed_at', v_job.claimed_at,
      'cancel_requested_at', v_job.cancel_requested_at
    ))::trunkline.explanation;
    return;
  end if;
  if v_job.state not in ('ready', 'scheduled', 'blocked') then
    return next row(v_job.state, null, jsonb_build_object(
      'finished_at', v_job.finished_at, 'reason', v_job.reason, 'last_error', v_job.last_error
    ))::trunkline.explanation;
    return;
  end if;
  if v_job.state in ('scheduled', 'blocked') and v_job.reason = 'suspended' then
    return query
    select
      'suspended', w.until,
      jsonb_strip_nulls(jsonb_build_object(
        'kind', w.kind, 'name', w.name, 'key', w.address, 'since', w.since,
        'workflow', case when w.kind = 'jobs' then w.reference end
      ))
    from trunkline_internal.job_waits as w
    where w.job_id = p_job and w.attempt = v_job.attempt
    order by w.until nulls last, w.place;
    return;
  end if;
  if v_job.state = 'scheduled' then
    return next row('scheduled', v_job.run_at, jsonb_build_object(
      'reason', coalesce(v_job.reason, 'not due yet'), 'failures', v_job.failures, 'deferrals', v_job.deferrals
    ))::trunkline.explanation;
  end if;
  if v_job.attempt = 0 and v_job.expires_at is not null then
    return next row('expires', v_job.expires_at, jsonb_build_object(
      'hint', 'if the job has not started by then, it ends cancelled with reason expired'
    ))::trunkline.explanation;
  end if;
  if v_job.state = 'blocked' and v_job.reason = 'dependency' then
    return next row('dependency', null, jsonb_build_object(
      'workflow', v_job.workflow_id,
      'open', trunkline_internal.open_dependencies(p_workflow => v_job.workflow_id, p_place => v_job.workflow_step)
    ))::trunkline.explanation;
    return;
  end if;
  if not trunkline_internal.setting(p_name => 'claims_enabled')::boolean then
    return next row('claims_disabled', null, jsonb_build_object('setting', 'claims_enabled'))::trunkline.explanation;
  end if;
  select q.* into v_queue from trunkline_internal.queues as q where q.queue = v_job.queue and q.paused;
  if found then
    return next row('queue_paused', null, jsonb_build_object(
      'queue', v_job.queue, 'reason', v_queue.reason, 'since', v_queue.paused_at, 'by', v_queue.paused_by
    ))::trunkline.explanation;
  end if;
  if not exists (
    select
    -- Reads the table, because the view shows no workers to a tenant, who receives this reason too.
    from trunkline_internal.workers as w
    where w.state = 'active'
      and w.seen_at >= trunkline.clock() - trunkline_internal.setting(p_name => 'pulse_misses')::integer * w.pulse_interval
      and (w.queues is null or v_job.queue = any(w.queues))
      and (w.tasks is null or v_job.task = any(w.tasks))
  ) then
    return next row('no_worker', null, jsonb_build_object(
      'queue', v_job.queue, 'task', v_job.task,
      'hint', 'no registered worker that is alive serves this queue and task'
    ))::trunkline.explanation;
  end if;
  select
    w.task,
    row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost as cost
  into v_place
  from trunkline_internal.waiting as w
  where w.job_id = p_job and w.state in ('ready', 'blocked');
  if (v_place.cost).bucket_ids is not null then
    return query select e.* from trunkline_internal.explain_exceeded(p_job => p_job, p_cost => v_place.cost, p_task => v_place.task) as e;
    if found then
      return;
    end if;
  end if;
  if v_job.state = 'ready' then
    -- Two index ranges, because a single condition would also read every job behind this one.
    select
      w.queue, w.lane, w.sequence, w.bucket,
      row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost as cost
    into v_place
    from trunkline_internal.waiting as w
    where w.job_id = p_job;
    if v_place.bucket is not null then
      return query select e.* from trunkline_internal.explain_breakers(p_cost => v_place.cost) as e;
      if found then
        return;
      end if;
      return next trunkline_internal.explain_bucket(
        p_bucket => v_place.bucket, p_cost => v_place.cost, p_queue => v_place.queue, p_lane => v_place.lane,
        p_sequence => v_place.sequence
      );
      return;
    end if;
    return query
    select 'waiting_its_turn', null::timestamptz, jsonb_build_object('ahead', count(*), 'counted_up_to', 1000)
    from (
      (
        select
        from trunkline_internal.waiting as w
        where w.queue = v_place.queue and w.state = 'ready' and w.bucket is null and w.lane > v_place.lane
        limit 1000
      )
      union all
      (
        select
        from trunkline_internal.waiting as w
        where w.queue = v_place.queue
          and w.state = 'ready'
          and w.bucket is null
          and w.lane = v_place.lane
          and w.sequence < v_place.sequence
        limit 1000
      )
      limit 1000
    ) as ahead;
  end if;
end;
$$;
comment on function trunkline.explain(uuid) is 'Returns why a job is not running and until when, one row per reason; for a running or ended job, its state and outcome.';
