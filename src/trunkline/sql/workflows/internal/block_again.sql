-- Puts the jobs of steps that were cancelled for a dependency back to blocked, under their ids, with failures, crashes and deferrals at zero.
-- cancelled -> blocked. Jobs of these steps that somebody cancelled stay cancelled. They take their unique keys again; if another
-- live job holds one, the call is refused and names it. The
-- caller holds the workflow's lock.
create or replace function trunkline_internal.block_again(p_workflow uuid, p_places integer[], p_now timestamptz)
returns void
language plpgsql
volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_held record;
  v_jobs uuid[];
  v_since timestamptz;
begin
  select array_agg(e.job_id), min(e.finished_at)
  into v_jobs, v_since
  from trunkline_internal.workflow_ends as e
  where e.workflow_id = p_workflow and e.step = any(p_places) and e.state = 'cancelled';
  if v_jobs is null then
    return;
  end if;
  with gone as (
    delete from trunkline_internal.finished as f
    where f.job_id = any(v_jobs) and f.finished_at >= v_since and f.state = 'cancelled' and f.reason = 'dependency'
    returning f.*
  ),
  noted as (
    insert into trunkline_internal.events (at, job_id, attempt, kind, to_state, task, queue, tenant, actor, detail)
    select
      p_now, g.job_id, g.attempt, 'reopened', 'blocked', g.task, g.queue, g.tenant, session_user,
      jsonb_build_object('workflow', p_workflow, 'reason', g.reason)
    from gone as g
  )
  insert into trunkline_internal.waiting (
    state, reason, sequence, failures, crashes, deferrals, expires_at, lane, bucket, cost_requests, cost_tokens, cost_units,
    limit_ids, bucket_ids,
    -- <job columns: finished to waiting>
    job_id, task, queue, tenant, attempt, max_attempts, created_at, run_at, unique_key, correlation_id, retry_of, tags,
    last_error, payload, payload_day, workflow_id, workflow_step, workflow_item
    -- </job>
  )
  select
    'blocked', 'dependency', null, 0, 0, 0, null, g.priority * 2, e.bucket_ids[1], e.cost_requests, e.cost_tokens, e.cost_units,
    e.limit_ids, e.bucket_ids,
    -- <job values: g>
    g.job_id, g.task, g.queue, g.tenant, g.attempt, g.max_attempts, g.created_at, g.run_at, g.unique_key, g.correlation_id,
    g.retry_of, g.tags, g.last_error, g.payload, g.payload_day, g.workflow_id, g.workflow_step, g.workflow_item
    -- </job>
  from gone as g
  join trunkline_internal.workflow_ends as e
    on e.workflow_id = p_workflow and e.step = g.workflow_step and e.item = coalesce(g.workflow_item, 0);
  delete from trunkline_internal.workflow_ends as e
  where e.workflow_id = p_workflow
    and e.step = any(p_places)
    and e.state = 'cancelled'
    and exists (select from trunkline_internal.waiting as w where w.job_id = e.job_id);
  perform trunkline_internal.notify_followers(p_ids => v_jobs);
  for v_held in
    select k.job_id, k.unique_key, h.holder
    from (
      select
        w.job_id, w.unique_key, w.tenant, w.task, coalesce(t.profile, 'default') as profile
      from trunkline_internal.waiting as w
      left join trunkline_internal.tasks as t on t.task = w.task
      where w.job_id = any(v_jobs) and w.unique_key is not null
      order by w.task, w.unique_key
    ) as k
    cross join lateral trunkline_internal.hold_unique_key(
      p_profile => k.profile, p_tenant => k.tenant, p_task => k.task, p_unique_key => k.unique_key, p_job => k.job_id
    ) as h (holder)
    where h.holder <> k.job_id
  loop
    perform trunkline_internal.refuse(
      p_name => 'unique_key_held',
      p_detail => jsonb_build_object('job', v_held.job_id, 'unique_key', v_held.unique_key, 'holder', v_held.holder)
    );
  end loop;
end;
$$;
comment on function trunkline_internal.block_again(uuid, integer[], timestamptz) is 'Puts the jobs of steps that were cancelled for a dependency back to blocked, under their ids, with failures, crashes and deferrals at zero.';
