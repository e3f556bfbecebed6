-- Moves jobs that have been set aside for longer than max_deferral_age to dead, if their tasks have dead_when_deferred; returns how many.
-- blocked -> dead, at most p_limit in a call. Jobs that fit again by now are left to free_set_aside. Locks the jobs in
-- id order and skips locked ones.
-- Jobs are found by id: (state = 'blocked') is true keeps the index of all blocked jobs out of the plan.
create or replace function trunkline_internal.bury_set_aside(p_limit integer, p_now timestamptz)
returns integer
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_before timestamptz := p_now - trunkline_internal.setting(p_name => 'max_deferral_age')::interval;
  v_ended trunkline_internal.workflow_end[];
  v_jobs uuid[];
begin
  v_jobs := array(
    select a.job_id
    from trunkline_internal.tasks as t
    cross join lateral (
      select a.job_id
      from trunkline_internal.set_aside as a
      where a.task = t.task and a.since < v_before
      order by a.since
      limit p_limit
    ) as a
    where t.dead_when_deferred
    limit p_limit
  );
  if cardinality(v_jobs) = 0 then
    return 0;
  end if;
  v_jobs := array(
    select w.job_id
    from trunkline_internal.waiting as w
    where w.job_id = any(v_jobs)
      and (w.state = 'blocked') is true
      and (trunkline_internal.exceeded_limit(
        p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
      )).bucket is not null
    order by w.job_id
    for update of w skip locked
  );
  insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
  select
    p_now, w.job_id, w.attempt, 'outgrown', 'dead', w.task, w.queue, w.tenant, session_user,
    trunkline_internal.exceeded_detail(p_bucket => o.bucket, p_unit => o.unit, p_cost => o.cost, p_most => o.most)
      || jsonb_build_object('since', a.since)
  from trunkline_internal.waiting as w
  join trunkline_internal.set_aside as a on a.job_id = w.job_id
  cross join lateral trunkline_internal.exceeded_limit(
    p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
  ) as o
  where w.job_id = any(v_jobs);
  select array_agg(row(
    w.workflow_id, w.workflow_step, w.workflow_item, w.job_id, 'dead', null, null, null, null, null
  )::trunkline_internal.workflow_end)
  into v_ended
  from trunkline_internal.waiting as w
  where w.job_id = any(v_jobs) and w.workflow_id is not null;
  with outgrown as materialized (
    select w.job_id, o.bucket, o.unit, o.cost, o.most
    from trunkline_internal.waiting as w
    cross join lateral trunkline_internal.exceeded_limit(
      p_cost => row(w.cost_requests, w.cost_tokens, w.cost_units, w.limit_ids, w.bucket_ids)::trunkline_internal.job_cost
    ) as o
    where w.job_id = any(v_jobs)
  ),
  taken as (
    delete from trunkline_internal.waiting as w where w.job_id = any(v_jobs) returning w.*
  )
  insert into trunkline_internal.dead (
    died_at, reason, last_error, error_group,
    -- <job columns: waiting to dead>
    job_id, task, queue, priority, tenant, attempt, failures, max_attempts, deferrals, created_at, run_at, unique_key,
    correlation_id, retry_of, tags, payload, payload_day, crashes, cost_requests, cost_tokens, cost_units, limit_ids,
    bucket_ids, expires_at, workflow_id, workflow_step, workflow_item
    -- </job>
  )
  select
    p_now, 'cost_over_limit', e.error,
    trunkline_internal.error_group_of(p_error => e.error, p_reason => 'cost_over_limit'),
    -- <job values: t>
    t.job_id, t.task, t.queue, t.lane >> 1, t.tenant, t.attempt, t.failures, t.max_attempts, t.deferrals, t.created_at,
    t.run_at, t.unique_key, t.correlation_id, t.retry_of, t.tags, t.payload, t.payload_day, t.crashes, t.cost_requests,
    t.cost_tokens, t.cost_units, t.limit_ids, t.bucket_ids, t.expires_at, t.workflow_id, t.workflow_step, t.workflow_item
    -- </job>
  from taken as t
  join outgrown as o on o.job_id = t.job_id
  cross join lateral (
    select trunkline_internal.exceeded_detail(p_bucket => o.bucket, p_unit => o.unit, p_cost => o.cost, p_most => o.most) as detail
  ) as d
  cross join lateral (
    select jsonb_build_object(
      'type', 'cost_over_limit',
      'message', format(
        'The job costs %s %s. The limit %s gives at most %s at once.', o.cost, d.detail ->> 'unit', d.detail ->> 'limit', o.most
      )
    ) as error
  ) as e;
  delete from trunkline_internal.unique_keys as k where k.job_id = any(v_jobs);
  delete from trunkline_internal.set_aside as a where a.job_id = any(v_jobs);
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  if v_ended is not null then
    perform trunkline_internal.end_workflow_jobs(p_ended => v_ended, p_now => p_now, p_wait => false);
  end if;
  return cardinality(v_jobs);
end;
$$;
comment on function trunkline_internal.bury_set_aside(integer, timestamptz) is 'Moves jobs that have been set aside for longer than max_deferral_age to dead, if their tasks have dead_when_deferred; returns how many.';
